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
        /// The first command that the user gives as a template (RESP).
        Command = "command",
        /// Command 2 that the user gives as a template (RESP).
        Command2 = "command-2",
        /// Command 3 that the user gives as a template (RESP).
        Command3 = "command-3",
        /// Command 4 that the user gives as a template (RESP).
        Command4 = "command-4",
        /// Command 5 that the user gives as a template (RESP).
        Command5 = "command-5",
        /// Command 6 that the user gives as a template (RESP).
        Command6 = "command-6",
        /// Command 7 that the user gives as a template (RESP).
        Command7 = "command-7",
        /// Command 8 that the user gives as a template (RESP).
        Command8 = "command-8",
        /// Command 9 that the user gives as a template (RESP).
        Command9 = "command-9",
        /// Command 10 that the user gives as a template (RESP).
        Command10 = "command-10",
        /// Command 11 that the user gives as a template (RESP).
        Command11 = "command-11",
        /// Command 12 that the user gives as a template (RESP).
        Command12 = "command-12",
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

    /// Whether the request stores a value. The answer is false for commands: a template may carry a value, but whether the server
    /// stores it is not known.
    pub fn stores(self) -> bool {
        matches!(self, Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas)
            || matches!(self, Verb::Hset | Verb::Mset)
    }

    /// Whether requests of this verb store or find nothing where the server does not hold what they need, or holds what they are not
    /// to replace; those of a user's command may.
    pub fn has_condition(self) -> bool {
        matches!(self, Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas)
            || matches!(self, Verb::Incr | Verb::Decr | Verb::Delete | Verb::Touch)
            || self.is_command()
    }

    /// Whether a request of this verb, carried out twice, has the same effect and the same reply as once. The answer is false for
    /// commands, which their templates decide on.
    pub fn may_repeat(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Hget | Verb::Version)
            || matches!(self, Verb::Set | Verb::Hset | Verb::Mset)
    }

    /// Whether requests of this verb have an expiry. The answer is true for append and prepend too, although RESP's
    /// APPEND and memcached's binary protocol send none with them.
    #[inline]
    pub fn has_expiry(self) -> bool {
        self.stores() && !self.is_resp_only() || matches!(self, Verb::Gat | Verb::Gats | Verb::Touch)
    }

    /// Whether only servers that speak RESP have the verb.
    pub fn is_resp_only(self) -> bool {
        matches!(self, Verb::Hget | Verb::Hset | Verb::Mset) || self.is_command()
    }

    /// Whether the request is one of the commands that the user gives as templates.
    #[inline]
    pub const fn is_command(self) -> bool {
        self as u8 >= Verb::Command as u8
    }

    /// The place of the verb among the commands of a plan; `None` for other verbs.
    #[inline]
    pub fn command(self) -> Option<usize> {
        self.is_command().then(|| self as usize - Verb::Command as usize)
    }

    /// The verb of the command at this place of a plan; `None` behind the last that there can be.
    pub fn of_command(place: usize) -> Option<Verb> {
        Verb::ALL.get(Verb::Command as usize + place).copied()
    }
}

/// Most commands of a plan.
pub const COMMANDS_MAX: usize = Verb::COUNT - Verb::Command as usize;
