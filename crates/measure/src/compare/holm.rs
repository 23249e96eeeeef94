//! Holm's correction for several tests at once.

/// The p of each test after Holm's step-down correction ("A simple sequentially rejective multiple test procedure", 1979): to
/// call tests significant whose corrected p is at most 0.05 makes one false claim in at most 5 of 100 comparisons, however
/// many tests there are.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut greatest: f64 = 0.0;
    for (place, index) in order.into_iter().enumerate() {
        let left = (p.len() - place) as f64;
        greatest = greatest.max(left * p[index]).min(1.0);
        adjusted[index] = greatest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_p_pays_for_all_tests_and_no_p_falls_below_a_lesser_one() {
        let adjusted = adjusted(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(super::adjusted(&[0.04]), [0.04]);
        assert_eq!(super::adjusted(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(super::adjusted(&[]).is_empty());
    }
}
