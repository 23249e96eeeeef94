//! Parts of a Plan that are saved as their text, and the error for text that is none of them.

use std::fmt;

/// Saves types as the text that they display, and loads them from it.
macro_rules! saved_as_text {
    ($($Type:ty),+) => {$(
        impl ::serde::Serialize for $Type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $Type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<$Type, D::Error> {
                let text: String = ::serde::Deserialize::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }

        #[cfg(feature = "schema")]
        impl ::schemars::JsonSchema for $Type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({ "type": "string" })
            }
        }
    )+};
}

pub(super) use saved_as_text;

/// Text that is not accepted as a part of a Plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The text that was given.
    pub given: String,
    /// The accepted forms.
    pub accepted: &'static str,
}

impl fmt::Display for TextError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, not '{}'", self.accepted, self.given)
    }
}

impl std::error::Error for TextError {}
