//! The words about a load of records that may be larger than its user knows.

use pummel_logic::plan::{Load, Plan, Work};
use pummel_measure::words::grouped;
use pummel_report::numbers::number;

/// Bytes of keys and values from which on a load is told before it begins.
const TOLD_BYTES: f64 = 4e9;

/// Units of bytes, each a thousand times the one before it.
const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];

/// The records that a plan stores and their size, where they are many; `None` for other plans.
pub fn words(plan: &Plan) -> Option<String> {
    let loads = |stores: fn(&Load) -> bool| {
        plan.phases.iter().any(|phase| matches!(&phase.work, Work::Load(load) if stores(load)))
    };
    let of_plain = u64::from(loads(|load| !load.no_plain));
    let of_commands = u64::from(loads(|load| load.commands));
    let data = &plan.data;
    // A command of a load adds to what stands under its key.
    let values = of_plain + of_commands * plan.stores_per_record();
    let each =
        (of_plain + of_commands) as f64 * data.key_size.mean() + values as f64 * data.value_size.mean();
    let bytes = each * data.records as f64;
    (bytes >= TOLD_BYTES).then(|| {
        format!(
            "{} records are to be stored, {} of keys and values, and a server needs more for each of them. One that holds less evicts \
             or refuses the rest",
            grouped(data.records),
            size(bytes)
        )
    })
}

/// A number of bytes with its unit.
fn size(bytes: f64) -> String {
    let mut value = bytes;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    while let (true, Some(next)) = (value >= 999.5, units.next()) {
        value /= 1_000.0;
        unit = next;
    }
    format!("{} {unit}", number(value))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use pummel_fronts::job::FrontInputs;
    use pummel_fronts::native;

    #[test]
    fn many_records_are_told_with_their_size_before_they_are_stored() {
        let said = |words: &str| {
            let inputs = FrontInputs::without_files(1);
            let words = words.split(' ').map(OsString::from);
            self::words(&native::job(words, &inputs).expect("a command line").plan)
        };
        let many = said("run -s a --records 1g").expect("it is told");
        assert!(
            many.starts_with("1,000,000,000 records are to be stored, 230 GB of keys and values"),
            "{many}"
        );
        assert!(
            said("load -s a --records 1m --value-size 1MiB").is_some_and(|many| many.contains("1.05 TB"))
        );
        let said_of = |more: &[&str]| {
            let words = "load -s a:6379 --protocol resp2 --records 1m --load-command".split(' ');
            let words =
                words.chain(["RPUSH __key__ __value__"]).chain(more.iter().copied()).map(OsString::from);
            self::words(&native::job(words, &FrontInputs::without_files(1)).expect("a command line").plan)
        };
        assert_eq!(said_of(&[]), None);
        let many = said_of(&["--load-per-record", "50"]).expect("it is told");
        assert!(many.contains("10.0 GB of keys and values"), "{many}");
        for words in ["run -s a", "run -s a --records 1g --no-load", "load -s a --records 10m"] {
            assert_eq!(said(words), None, "{words}");
        }
    }
}
