//! Calls of each command of the built-in server, for INFO commandstats.

/// Names of commands and the number of their calls, by their places in the table of commands.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<(&'static str, u64)>);

impl Calls {
    /// Counts a call of the command with this name, which stands at `place` of the table.
    pub(super) fn count(&mut self, place: usize, name: &'static str) {
        if self.0.len() <= place {
            self.0.resize(place + 1, ("", 0));
        }
        self.0[place] = (name, self.0[place].1 + 1);
    }

    /// The commands that were called, in the order of the table.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied().filter(|(_, calls)| *calls > 0)
    }
}
