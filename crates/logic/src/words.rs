//! Enums of words, each of which is one list: its variants, and the words for them.

/// Makes an enum of which each variant has one word: on command lines, in Plans and in results.
///
/// A new variant is added to the list, and nowhere else: serde, `ALL`, `COUNT`, `name` and `from_name` are made from it.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* pub enum $Name:ident {
        $($(#[$variant_about:meta])* $Variant:ident = $word:literal,)*
    }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize)]
        $(#[$about])*
        pub enum $Name {
            $($(#[$variant_about])* #[serde(rename = $word)] $Variant,)*
        }

        impl $Name {
            /// Every variant, in the order of reports. `ALL[variant as usize] == variant`.
            pub const ALL: [$Name; $Name::COUNT] = [$($Name::$Variant),*];

            /// Number of variants.
            pub const COUNT: usize = [$($word),*].len();

            /// The word of the variant.
            pub fn name(self) -> &'static str {
                match self {
                    $($Name::$Variant => $word,)*
                }
            }

            /// The variant with this word; `None` if none has it.
            pub fn from_name(name: &str) -> Option<$Name> {
                $Name::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::words! {
        /// Words of a test.
        pub enum Answer {
            /// The answer is no.
            No = "no",
            /// The answer is that the question is not understood.
            NotUnderstood = "not-understood",
        }
    }

    #[test]
    fn a_variant_is_its_word_everywhere() {
        for (place, answer) in Answer::ALL.into_iter().enumerate() {
            assert_eq!(answer as usize, place);
            assert_eq!(Answer::from_name(answer.name()), Some(answer));
            assert_eq!(serde_json::to_value(answer).expect("it is a word"), answer.name());
        }
        assert_eq!(Answer::ALL.map(Answer::name), ["no", "not-understood"]);
        assert_eq!(Answer::from_name("yes"), None);
        assert!(serde_json::from_str::<Answer>("\"yes\"").is_err());
    }
}
