//! The words for what commands of the user found: what a load stored for them, and what was not there.

use pummel_logic::plan::{CommandWithoutData, Plan};
use pummel_measure::words::{counted, grouped, percent};

/// The records that a load of a plan stored, of those that it was to store.
pub(crate) fn loaded(plan: &Plan, stored: u64, records: u64) -> String {
    match plan.stores_per_record() {
        1 => format!("{} of {} stored", grouped(stored), counted(records, "record")),
        each => {
            format!(
                "{} of {} ({} for each record) made",
                grouped(stored),
                counted(records, "store"),
                grouped(each)
            )
        }
    }
}

/// The sentence for such a command.
pub(crate) fn without_data(command: &CommandWithoutData<'_>) -> String {
    let name = command.name;
    match (command.loaded_plain, command.reads_plain) {
        (true, _) => format!(
            "'{name}' does not read the plain values that were loaded; --load-command stores what it reads"
        ),
        (false, true) => {
            format!("this run stored nothing for '{name}'; --load stores plain values, which it reads")
        }
        (false, false) => {
            format!("this run stored nothing for '{name}'; --load-command stores what it reads")
        }
    }
}

/// The sentence for a command of which this share of the keys did not exist by the servers' counts.
pub(crate) fn untold_misses(name: &str, share: f64) -> String {
    format!(
        "by the server's count {} of the keys of '{name}' did not exist; its replies do not show it",
        percent(share)
    )
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::LoadCommand;

    use super::*;

    #[test]
    fn what_was_loaded_is_records_or_stores_of_them() {
        let mut plan = Plan::default();
        assert_eq!(loaded(&plan, 7, 1_000), "7 of 1,000 records stored");
        let load = |per_record| Some(LoadCommand { template: "RPUSH __key__ x".to_owned(), per_record });
        plan.load_command = load(1);
        assert_eq!(loaded(&plan, 1, 1), "1 of 1 record stored");
        plan.load_command = load(3);
        assert_eq!(loaded(&plan, 60, 60), "60 of 60 stores (3 for each record) made");
    }

    #[test]
    fn commands_that_found_nothing_are_told_what_would_store_it() {
        let told = |reads_plain, loaded_plain| {
            without_data(&CommandWithoutData { name: "range", reads_plain, loaded_plain })
        };
        assert!(told(false, true).starts_with("'range' does not read the plain values"));
        assert!(told(true, false).ends_with("--load stores plain values, which it reads"));
        assert_eq!(
            told(false, false),
            "this run stored nothing for 'range'; --load-command stores what it reads"
        );
    }
}
