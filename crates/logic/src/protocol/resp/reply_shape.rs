//! The shapes that the user says replies to a command have, in place of what the table of commands knows.

use super::command_table::Tells;

crate::words! {
    /// The shape that replies to a command of the user are to have. A reply of another shape is a miss, or an error where nothing was
    /// to be there.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum ReplyShape {
        /// Every reply is as good as any other, and tells nothing.
        Any = "any",
        /// The word OK; every other reply is a miss.
        Ok = "ok",
        /// A number; every other reply is a miss.
        Int = "int",
        /// All but null, an empty string and an empty list, which are misses.
        Nonempty = "nonempty",
        /// Null; every other reply is an error.
        Nil = "nil",
    }
}

impl ReplyShape {
    /// The form in which replies tell.
    pub(super) fn tells(self) -> Tells {
        match self {
            ReplyShape::Any => Tells::No,
            ReplyShape::Ok => Tells::Ok,
            ReplyShape::Int => Tells::Integer,
            ReplyShape::Nonempty => Tells::NotEmpty,
            ReplyShape::Nil => Tells::Null,
        }
    }
}
