//! The counters of the built-in server, as `stats` shows them.

macro_rules! store_counts {
    ($($field:ident)*) => {
        /// Counters of the server; names and meaning are those of memcached's `stats` (`protocol.txt`, "General-purpose
        /// statistics").
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each field is the counter of that name in memcached's protocol document")]
        pub struct StoreCounts {
            $(pub $field: u64,)*
        }

        impl StoreCounts {
            /// The counters with their names.
            pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

store_counts! {
    total_connections cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired get_flushed
    delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits
    touch_misses store_too_large bytes_read bytes_written total_items evictions
}
