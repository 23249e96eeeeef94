//! Structs of counters, each of which is one list of fields: adding, subtracting and comparing with 0 are made from it.

/// A number that only adds up, or a struct or an array of such numbers.
pub trait Counter: Copy + Default + PartialEq {
    /// Changes each number by the number at its place in `other`.
    fn change(&mut self, other: &Self, by: impl Fn(&mut u64, u64) + Copy);
}

impl Counter for u64 {
    #[inline(always)]
    fn change(&mut self, other: &u64, by: impl Fn(&mut u64, u64) + Copy) {
        by(self, *other);
    }
}

impl<const N: usize> Counter for [u64; N]
where
    [u64; N]: Default,
{
    #[inline(always)]
    fn change(&mut self, other: &[u64; N], by: impl Fn(&mut u64, u64) + Copy) {
        self.iter_mut().zip(other).for_each(|(number, more)| by(number, *more));
    }
}

/// Makes a struct whose fields are all [`Counter`]s: `Copy`, saved and loaded by serde, and with the verbs of counters.
///
/// A new field is added to the list, and nowhere else: `merge` adds another part of a run, whatever it claims; `add` adds what
/// this process counted itself, by one plain addition for each number, since it may be called for each reply; `subtract` takes
/// a part away again; `is_zero` says that nothing was counted.
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* pub struct $Name:ident {
        $($(#[$field_about:meta])* pub $field:ident: $Type:ty,)*
    }) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(::schemars::JsonSchema))]
        $(#[$about])*
        pub struct $Name {
            $($(#[$field_about])* pub $field: $Type,)*
        }

        impl $crate::counters::Counter for $Name {
            #[inline(always)]
            fn change(&mut self, other: &$Name, by: impl Fn(&mut u64, u64) + Copy) {
                $($crate::counters::Counter::change(&mut self.$field, &other.$field, by);)*
            }
        }

        impl $Name {
            /// Adds the counts of another part of the run; no count goes beyond the greatest number.
            pub fn merge(&mut self, other: &$Name) {
                $crate::counters::Counter::change(self, other, |count, more| *count = count.saturating_add(more));
            }

            /// Adds counts of this process, which are far from the greatest number.
            #[inline]
            pub fn add(&mut self, own: &$Name) {
                $crate::counters::Counter::change(self, own, |count, more| *count += more);
            }

            /// Takes the counts of a part away, each as far as it is there.
            pub fn subtract(&mut self, part: &$Name) {
                $crate::counters::Counter::change(self, part, |count, less| *count = count.saturating_sub(less));
            }

            /// Whether nothing was counted.
            pub fn is_zero(&self) -> bool {
                *self == $Name::default()
            }
        }

        impl $crate::merge::Merge for $Name {
            fn merge(&mut self, other: &$Name) {
                $Name::merge(self, other);
            }
        }

        impl $crate::merge::Clear for $Name {
            fn clear(&mut self) {
                *self = $Name::default();
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::counters! {
        /// Counters of a test.
        pub struct Inner {
            /// A list of counts.
            pub list: [u64; 3],
        }
    }

    crate::counters! {
        /// Counters of a test with others in them.
        #[serde(deny_unknown_fields)]
        pub struct Outer {
            /// A first count.
            pub one: u64,
            /// A count that is saved under another name.
            #[serde(rename = "two")]
            pub other: u64,
            /// Counters inside counters.
            pub inner: Inner,
        }
    }

    #[test]
    fn every_number_is_added_and_taken_away_in_structs_and_lists_alike() {
        let inner = Inner { list: [3, 4, 5] };
        let part = Outer { one: 1, other: 2, inner };
        let (mut sum, mut added) = (part, part);
        sum.merge(&part);
        added.add(&part);
        assert_eq!(sum, Outer { one: 2, other: 4, inner: Inner { list: [6, 8, 10] } });
        assert_eq!(added, sum);
        sum.subtract(&part);
        assert_eq!((sum, sum.is_zero()), (part, false));
        sum.subtract(&added);
        assert!(sum.is_zero(), "no count falls below 0");
        sum.inner.merge(&inner);
        sum.inner.add(&inner);
        sum.inner.subtract(&inner);
        assert_eq!((sum.inner, sum.inner.is_zero()), (inner, false));
    }

    #[test]
    fn a_claim_of_the_greatest_number_does_not_wrap() {
        let mut sum = Outer { one: 1, ..Outer::default() };
        sum.merge(&Outer { one: u64::MAX, ..Outer::default() });
        assert_eq!(sum.one, u64::MAX);
    }
}
