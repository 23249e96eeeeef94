//! The verbs of requests, and the properties of each verb.

crate::words! {
    /// The verb of a request. Results are kept for each verb.
    #[repr(u8)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Verb {
        /// Read the value of one or many keys.
        Get = "get",
        /// Read the value and CAS unique of one or many keys.
        Gets = "gets",
        /// Read a value and set a new expiry.
        Gat = "gat",
        /// Read a value with its CAS unique, and set a new expiry.
        Gats = "gats",
        /// Store a value.
        Set = "set",
        /// Store a value only if the key does not exist.
        Add = "add",
        /// Store a value only if the key exists.
        Replace = "replace",
        /// Add bytes at the end of the stored value.
        Append = "append",
        /// Add bytes at the beginning of the stored value.
        Prepend = "prepend",
        /// Store a value only if no other client has stored one since the CAS unique was read.
        Cas = "cas",
        /// Add to a stored decimal number.
        Incr = "incr",
        /// Subtract from a stored decimal number: memcached stops at 0, RESP servers go below.
        Decr = "decr",
        /// Remove a key.
        Delete = "delete",
        /// Set a new expiry of a key.
        Touch = "touch",
        /// Ask for the server's version (memcached) or send PING (RESP).
        Version = "version",
        /// Read a field of a hash (RESP).
        Hget = "hget",
        /// Store a value in a field of a hash (RESP).
        Hset = "hset",
        /// Store values under one or many keys (RESP).
        Mset = "mset",
        /// A command that the user gives as a template (RESP).
        Command = "command",
    }
}

impl Verb {
    /// Whether the request reads values, so that its keys are counted as hits and misses.
    pub fn reads(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Hget)
    }

    /// Whether requests of this verb begin with a read: the reading verbs, and cas, which reads the CAS unique first.
    pub fn asks_for_values(self) -> bool {
        self.reads() || self == Verb::Cas
    }

    /// Whether the request stores a value. The answer is false for [`Verb::Command`]: its template may carry a value,
    /// but whether the server stores it is not known.
    pub fn stores(self) -> bool {
        matches!(self, Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas)
            || matches!(self, Verb::Hset | Verb::Mset)
    }

    /// Whether requests of this verb store or find nothing where the server does not hold what they need, or holds what they are not
    /// to replace; those of a user's command may.
    pub fn has_condition(self) -> bool {
        matches!(self, Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas)
            || matches!(self, Verb::Incr | Verb::Decr | Verb::Delete | Verb::Touch | Verb::Command)
    }

    /// Whether requests of this verb have an expiry. The answer is true for append and prepend too, although RESP's
    /// APPEND and memcached's binary protocol send none with them.
    #[inline]
    pub fn has_expiry(self) -> bool {
        self.stores() && !self.is_resp_only() || matches!(self, Verb::Gat | Verb::Gats | Verb::Touch)
    }

    /// Whether only servers that speak RESP have the verb.
    pub fn is_resp_only(self) -> bool {
        matches!(self, Verb::Hget | Verb::Hset | Verb::Mset | Verb::Command)
    }
}
