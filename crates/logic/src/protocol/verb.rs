//! The verbs of requests, and what each verb carries and does.

crate::words! {
    /// The verb of a request. Figures are kept apart by verb.
    #[repr(u8)]
    pub enum Verb {
        /// Read one or many keys.
        Get = "get",
        /// Read one or many keys with their CAS unique.
        Gets = "gets",
        /// Read and set a new expiry.
        Gat = "gat",
        /// Read with CAS unique and set a new expiry.
        Gats = "gats",
        /// Store a value.
        Set = "set",
        /// Store where nothing is stored yet.
        Add = "add",
        /// Store where something is stored already.
        Replace = "replace",
        /// Add bytes at the end of a value.
        Append = "append",
        /// Add bytes at the beginning of a value.
        Prepend = "prepend",
        /// Store where no other client stored since the CAS unique was read.
        Cas = "cas",
        /// Add to a decimal value.
        Incr = "incr",
        /// Subtract from a decimal value, down to 0.
        Decr = "decr",
        /// Remove a key.
        Delete = "delete",
        /// Set a new expiry.
        Touch = "touch",
        /// Ask for the server's version: the smallest exchange there is.
        Version = "version",
        /// Read a field of a hash (RESP).
        Hget = "hget",
        /// Store in a field of a hash (RESP).
        Hset = "hset",
        /// Store under one or many keys (RESP).
        Mset = "mset",
        /// The command of the template (RESP).
        Command = "command",
    }
}

impl Verb {
    /// Whether replies carry values, so that keys are counted as hits and misses.
    pub fn reads(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Hget)
    }

    /// Whether a read is the request, or the first half of it.
    pub fn asks_for_values(self) -> bool {
        self.reads() || self == Verb::Cas
    }

    /// Whether the request stores a value. [`Verb::Command`] may carry a value too, but its use of the value is not
    /// known.
    pub fn stores(self) -> bool {
        matches!(self, Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas)
            || matches!(self, Verb::Hset | Verb::Mset)
    }

    /// Whether requests of this verb carry an expiry.
    #[inline]
    pub fn has_expiry(self) -> bool {
        self.stores() && !self.is_resp_only() || matches!(self, Verb::Gat | Verb::Gats | Verb::Touch)
    }

    /// Whether only servers that speak RESP know the verb.
    pub fn is_resp_only(self) -> bool {
        matches!(self, Verb::Hget | Verb::Hset | Verb::Mset | Verb::Command)
    }
}
