//! The verbs of requests, and what each verb carries and does.

/// The verb of a request. Figures are kept apart by verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Verb {
    /// Read one or many keys.
    Get,
    /// Read one or many keys with their CAS unique.
    Gets,
    /// Read and set a new expiry.
    Gat,
    /// Read with CAS unique and set a new expiry.
    Gats,
    /// Store a value.
    Set,
    /// Store where nothing is stored yet.
    Add,
    /// Store where something is stored already.
    Replace,
    /// Add bytes at the end of a value.
    Append,
    /// Add bytes at the beginning of a value.
    Prepend,
    /// Store where no other client stored since the CAS unique was read.
    Cas,
    /// Add to a decimal value.
    Incr,
    /// Subtract from a decimal value, down to 0.
    Decr,
    /// Remove a key.
    Delete,
    /// Set a new expiry.
    Touch,
    /// Ask for the server's version: the smallest exchange there is.
    Version,
    /// Read a field of a hash (RESP).
    Hget,
    /// Store in a field of a hash (RESP).
    Hset,
    /// Store under one or many keys (RESP).
    Mset,
    /// The command of the template (RESP).
    Command,
}

impl Verb {
    /// Every verb, in the order of reports. `ALL[v as usize] == v`.
    pub const ALL: [Verb; 19] = [
        Verb::Get,
        Verb::Gets,
        Verb::Gat,
        Verb::Gats,
        Verb::Set,
        Verb::Add,
        Verb::Replace,
        Verb::Append,
        Verb::Prepend,
        Verb::Cas,
        Verb::Incr,
        Verb::Decr,
        Verb::Delete,
        Verb::Touch,
        Verb::Version,
        Verb::Hget,
        Verb::Hset,
        Verb::Mset,
        Verb::Command,
    ];

    /// Number of verbs.
    pub const COUNT: usize = Verb::ALL.len();

    /// The word of the command line, of the JSON result and of the text protocol.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Gets => "gets",
            Verb::Gat => "gat",
            Verb::Gats => "gats",
            Verb::Set => "set",
            Verb::Add => "add",
            Verb::Replace => "replace",
            Verb::Append => "append",
            Verb::Prepend => "prepend",
            Verb::Cas => "cas",
            Verb::Incr => "incr",
            Verb::Decr => "decr",
            Verb::Delete => "delete",
            Verb::Touch => "touch",
            Verb::Version => "version",
            Verb::Hget => "hget",
            Verb::Hset => "hset",
            Verb::Mset => "mset",
            Verb::Command => "command",
        }
    }

    /// The verb with this name; `None` if no verb has it.
    pub fn from_name(name: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Whether replies carry values, so that keys are counted as hits and misses.
    pub fn reads(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Gat | Verb::Gats | Verb::Hget)
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
