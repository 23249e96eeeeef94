//! Zipf's law, drawn without a table.

use crate::rng::{self, Stream};

/// Zipf's law over ranks 1 to n, by rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate
/// variates from monotone discrete distributions", ACM TOMACS 6(3), 1996.
///
/// x^-s is integrated from rank n downwards and in units of its end e = n + 1/2: with t = x / e, the area from x to the
/// end is (1 - t^q) / q, q = 1 - s, or -ln t where q is 0. A uniform area gives a real x and its nearest rank k; k
/// stands if the area lies in the k-th bar of the histogram, which is right-aligned under the curve. Seen from the end,
/// no difference cancels, neither near s = 1 nor at ranks whose share is tiny.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zipf {
    ranks: u64,
    end: f64,
    exponent: f64,
    /// 1 - `exponent`, and its inverse (0 where there is none).
    q: f64,
    q_inverse: f64,
    /// Area under all bars, of which the first is the full one of rank 1.
    area: f64,
    /// A real number this little below its rank, or less, is in the rank's bar, whatever the rank.
    surely_below: f64,
}

impl Zipf {
    pub(super) fn new(ranks: u64, exponent: f64) -> Zipf {
        let q = 1.0 - exponent;
        let q_inverse = if q == 0.0 { 0.0 } else { 1.0 / q };
        let end = ranks as f64 + 0.5;
        let mut zipf = Zipf { ranks, end, exponent, q, q_inverse, area: 0.0, surely_below: 0.0 };
        zipf.area = zipf.area_with_bar(1.0);
        // Bars grow narrower, compared with their strip of the curve, towards low ranks; that of rank 1 has its own
        // left edge, so rank 2 sets the bound.
        zipf.surely_below = 2.0 - zipf.position(zipf.area_with_bar(2.0));
        zipf
    }

    /// The rank of draw `i`; every rejected try takes the next sub-counter.
    #[inline]
    pub(super) fn rank(&self, stream: &Stream, i: u64) -> u64 {
        self.rank_from(stream, i, &mut 0)
    }

    /// The rank of draw `i` from sub-counter `attempt` on, which is that of the accepted try afterwards.
    #[inline]
    pub(super) fn rank_from(&self, stream: &Stream, i: u64, attempt: &mut u64) -> u64 {
        loop {
            let area = self.area * rng::unit(stream.draw_sub(i, *attempt));
            let x = self.position(area);
            let rank = ((x + 0.5) as u64).clamp(1, self.ranks);
            let nearest = rank as f64;
            if nearest - x <= self.surely_below || rank == 1 || area <= self.area_with_bar(nearest) {
                return rank;
            }
            *attempt += 1;
        }
    }

    /// The x with this area between it and the end.
    #[inline]
    fn position(&self, area: f64) -> f64 {
        let logarithm = if self.q == 0.0 { -area } else { libm::log1p(-self.q * area) * self.q_inverse };
        self.end * libm::exp(logarithm)
    }

    /// The area from the right edge of a rank's strip to the end, plus the rank's bar.
    fn area_with_bar(&self, rank: f64) -> f64 {
        let edge = libm::log((rank + 0.5) / self.end);
        let beyond = if self.q == 0.0 { -edge } else { -libm::expm1(self.q * edge) * self.q_inverse };
        beyond + libm::pow(rank / self.end, -self.exponent) / self.end
    }
}
