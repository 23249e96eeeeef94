//! Structs whose parts are merged field by field, each of which is one list of fields, and what their fields are made of.

use std::collections::BTreeMap;

/// A part of what a run measures, to which the same part of another worker, slice or process is added, which may have another form.
pub trait Merge<Other = Self> {
    /// Adds everything that `other` has.
    fn merge(&mut self, other: &Other);

    /// A copy of `other` in this form.
    fn copy_of(other: &Other) -> Self
    where
        Self: Default,
    {
        let mut copy = Self::default();
        copy.merge(other);
        copy
    }
}

/// A part of what a run measures that is made empty again and keeps its memory.
pub trait Clear {
    /// Makes the part empty.
    fn clear(&mut self);
}

/// Makes a struct that is saved and loaded by serde, and merged field by field: each field by [`Merge`], or by the function that
/// stands behind its type.
///
/// A new field is added to the list, and nowhere else. A struct of times has a type parameter for the form of its times, with the
/// form in which they are recorded as its default: it merges with every form that this form merges with.
#[macro_export]
macro_rules! merged {
    (@field $own:expr, $other:expr) => { $crate::merge::Merge::merge($own, $other) };
    (@field $own:expr, $other:expr, $by:path) => { $by($own, $other) };

    ($(#[$about:meta])* pub struct $Name:ident {
        $($(#[$field_about:meta])* pub $field:ident: $Type:ty $(=> $by:path)?,)*
    }) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        $(#[$about])*
        pub struct $Name {
            $($(#[$field_about])* pub $field: $Type,)*
        }

        impl $Name {
            /// Adds everything that another part of the run has.
            pub fn merge(&mut self, other: &$Name) {
                $($crate::merged!(@field &mut self.$field, &other.$field $(, $by)?);)*
            }
        }

        impl $crate::merge::Merge for $Name {
            fn merge(&mut self, other: &$Name) {
                $Name::merge(self, other);
            }
        }
    };

    ($(#[$about:meta])* pub struct $Name:ident<$Form:ident = $Recorded:ty> {
        $($(#[$field_about:meta])* pub $field:ident: $Type:ty,)*
    }) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        $(#[$about])*
        pub struct $Name<$Form = $Recorded> {
            $($(#[$field_about])* pub $field: $Type,)*
        }

        impl<$Form: $crate::merge::Merge<Other> + Default, Other> $crate::merge::Merge<$Name<Other>> for $Name<$Form> {
            fn merge(&mut self, other: &$Name<Other>) {
                $($crate::merge::Merge::merge(&mut self.$field, &other.$field);)*
            }
        }

        impl<$Form: $crate::merge::Clear> $crate::merge::Clear for $Name<$Form> {
            fn clear(&mut self) {
                $($crate::merge::Clear::clear(&mut self.$field);)*
            }
        }
    };
}

/// Keeps the greater one of two values.
pub fn greatest<T: Copy + Ord>(own: &mut T, other: &T) {
    *own = (*own).max(*other);
}

/// Keeps the own value, or takes the other one where there is none.
pub fn first<T: Clone>(own: &mut Option<T>, other: &Option<T>) {
    if own.is_none() {
        own.clone_from(other);
    }
}

/// Merges what both have by `merge`, and takes what only the other has.
pub fn join<T: Clone>(own: &mut Option<T>, other: &Option<T>, merge: impl FnOnce(&mut T, &T)) {
    match (own, other) {
        (Some(own), Some(other)) => merge(own, other),
        (own, other) => first(own, other),
    }
}

impl Merge for u64 {
    fn merge(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }
}

impl Merge for u128 {
    fn merge(&mut self, other: &u128) {
        *self = self.saturating_add(*other);
    }
}

impl<T: Merge<U>, U> Merge<Box<U>> for Box<T> {
    fn merge(&mut self, other: &Box<U>) {
        (**self).merge(other);
    }
}

impl<T: Merge<U> + Default, U> Merge<Option<U>> for Option<T> {
    fn merge(&mut self, other: &Option<U>) {
        if let Some(other) = other {
            self.get_or_insert_default().merge(other);
        }
    }
}

impl<T: Merge<U>, U, const N: usize> Merge<[U; N]> for [T; N] {
    fn merge(&mut self, other: &[U; N]) {
        self.iter_mut().zip(other).for_each(|(own, other)| own.merge(other));
    }
}

/// Elements belong to each other by their places.
impl<T: Merge<U> + Default, U> Merge<Vec<U>> for Vec<T> {
    fn merge(&mut self, other: &Vec<U>) {
        self.resize_with(self.len().max(other.len()), T::default);
        self.iter_mut().zip(other).for_each(|(own, other)| own.merge(other));
    }
}

impl<K: Clone + Ord, T: Merge<U> + Default, U> Merge<BTreeMap<K, U>> for BTreeMap<K, T> {
    fn merge(&mut self, other: &BTreeMap<K, U>) {
        other.iter().for_each(|(key, other)| self.entry(key.clone()).or_default().merge(other));
    }
}

impl<T: Clear> Clear for Box<T> {
    fn clear(&mut self) {
        (**self).clear();
    }
}

impl<T: Clear> Clear for Option<T> {
    fn clear(&mut self) {
        self.iter_mut().for_each(T::clear);
    }
}

impl<T: Clear, const N: usize> Clear for [T; N] {
    fn clear(&mut self) {
        self.iter_mut().for_each(T::clear);
    }
}

impl<T> Clear for Vec<T> {
    fn clear(&mut self) {
        Vec::clear(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times as their sum.
    #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    pub struct Times {
        sum: u64,
    }

    /// Times as text.
    #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    pub struct Text(String);

    impl Merge for Times {
        fn merge(&mut self, other: &Times) {
            self.sum += other.sum;
        }
    }

    impl Clear for Times {
        fn clear(&mut self) {
            self.sum = 0;
        }
    }

    impl Merge<Times> for Text {
        fn merge(&mut self, other: &Times) {
            self.0 += &format!("+{}", other.sum);
        }
    }

    impl Merge<Text> for Times {
        fn merge(&mut self, other: &Text) {
            self.sum += other.0.split('+').filter_map(|number| number.parse::<u64>().ok()).sum::<u64>();
        }
    }

    crate::merged! {
        /// An account of a test.
        pub struct Account {
            /// A number that adds up.
            pub count: u64,
            /// A number of which the greatest counts.
            pub longest: u64 => greatest,
            /// A value of which the first one counts.
            pub name: Option<String> => first,
            /// Counts by their places.
            pub list: Vec<u64>,
            /// Counts by their names.
            pub named: BTreeMap<String, Times>,
        }
    }

    crate::merged! {
        /// A record of a test, in two forms.
        pub struct Record<T = Times> {
            /// Times that have one form.
            pub count: Times,
            /// Times that are always there.
            pub pair: [T; 2],
            /// Times that may be there.
            pub rare: Option<Box<T>>,
        }
    }

    #[test]
    fn each_field_is_merged_in_its_own_way() {
        let of = |count: u64, name: Option<&str>| Account {
            count,
            longest: count,
            name: name.map(str::to_owned),
            list: vec![1; count as usize],
            named: BTreeMap::from([
                (format!("{count}"), Times { sum: 1 }),
                ("all".to_owned(), Times { sum: 1 }),
            ]),
        };
        let mut sum = of(2, None);
        sum.merge(&of(3, Some("three")));
        sum.merge(&of(1, Some("one")));
        assert_eq!((sum.count, sum.longest, sum.name.as_deref()), (6, 3, Some("three")));
        assert_eq!(sum.list, [3, 2, 1]);
        let named: Vec<(&str, u64)> =
            sum.named.iter().map(|(name, times)| (name.as_str(), times.sum)).collect();
        assert_eq!(named, [("1", 1), ("2", 1), ("3", 1), ("all", 3)]);
        sum.merge(&Account { count: u64::MAX, ..Account::default() });
        assert_eq!(sum.count, u64::MAX, "a claim of the greatest number does not wrap");
    }

    #[test]
    fn a_record_goes_from_form_to_form_and_back() {
        let times = |sum| Times { sum };
        let record = Record { count: times(1), pair: [times(2), times(3)], rare: Some(Box::new(times(4))) };
        let packed = Record::<Text>::copy_of(&record);
        assert_eq!((packed.pair[1].0.as_str(), &packed.count), ("+3", &times(1)));
        let mut back = Record::<Times>::copy_of(&packed);
        assert_eq!(back, record);
        back.merge(&record);
        assert_eq!((back.count.sum, back.pair[0].sum, back.rare.as_deref()), (2, 4, Some(&times(8))));
        back.clear();
        assert_eq!(back, Record { rare: Some(Box::default()), ..Record::default() }, "memory is kept");
    }
}
