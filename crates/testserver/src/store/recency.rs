//! The exact order in which items were used: a list through their places.

/// Number of no place.
const NONE: u32 = u32::MAX;

/// Places from the one that was used last to the one that was not used for the longest time.
#[derive(Debug)]
pub(super) struct Recency {
    /// Next newer and next older place of each place.
    links: Vec<[u32; 2]>,
    newest: u32,
    oldest: u32,
}

impl Recency {
    pub(super) fn new() -> Recency {
        Recency { links: Vec::new(), newest: NONE, oldest: NONE }
    }

    /// The place that has not been used for the longest time; `None` if there is none.
    pub(super) fn oldest(&self) -> Option<usize> {
        (self.oldest != NONE).then_some(self.oldest as usize)
    }

    /// Makes a place that is not in the list the newest.
    pub(super) fn add(&mut self, place: usize) {
        if self.links.len() <= place {
            self.links.resize(place + 1, [NONE; 2]);
        }
        self.links[place] = [NONE, self.newest];
        match self.newest {
            NONE => self.oldest = place as u32,
            newest => self.links[newest as usize][0] = place as u32,
        }
        self.newest = place as u32;
    }

    /// Takes a place out of the list.
    pub(super) fn remove(&mut self, place: usize) {
        let [newer, older] = self.links[place];
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize][1] = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize][0] = newer,
        }
    }

    /// Makes a place of the list the newest.
    pub(super) fn renew(&mut self, place: usize) {
        if self.newest != place as u32 {
            self.remove(place);
            self.add(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::{below, mix};

    #[test]
    fn the_oldest_is_that_of_a_plain_list_whatever_is_used_and_removed() {
        let (mut recency, mut plain) = (Recency::new(), Vec::<usize>::new());
        for step in 0..4_000 {
            let place = below(mix(&[step]), 20) as usize;
            match (plain.iter().position(|known| *known == place), step % 3) {
                (Some(at), 0) => {
                    plain.remove(at);
                    recency.remove(place);
                }
                (Some(at), _) => {
                    plain.remove(at);
                    plain.push(place);
                    recency.renew(place);
                }
                (None, _) => {
                    plain.push(place);
                    recency.add(place);
                }
            }
            assert_eq!(recency.oldest(), plain.first().copied(), "step {step}");
        }
    }
}
