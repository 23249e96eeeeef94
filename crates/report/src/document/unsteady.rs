//! Why a run was not steady whose figures did not change, in words.

use super::{Document, ServerResult, WarmUpResult};

impl Document {
    /// Why a run was not steady whose figures did not change: a warm-up that was over before the load had settled, or a server that
    /// saved meanwhile. A part of a sentence.
    pub fn unsteady_words(&self) -> String {
        let is_unsettled =
            |warm_up: &WarmUpResult| warm_up.until.is_none() && !warm_up.settled && !warm_up.cut_short;
        let servers = self.evidence.iter().flat_map(|evidence| &evidence.servers);
        let of_server = |server: &ServerResult| {
            let saves = &server.reading.as_ref()?.saves;
            let save = saves.iter().find(|save| save.from_s.is_some() || save.to_s.is_some())?;
            Some(format!("{} {}", server.address, save.says))
        };
        let saved = servers.into_iter().find_map(of_server);
        saved
            .filter(|_| !self.warmup.as_ref().is_some_and(is_unsettled))
            .unwrap_or_else(|| "the warm-up was over before the load had settled".to_owned())
    }
}
