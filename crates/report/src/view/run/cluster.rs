//! The cluster of a run: the evenness of its shards, the redirects, and the outages.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use pummel_logic::plan::Group;
use pummel_measure::words::{counted, grouped, percent};

use super::counts::{OUT_OF_BALANCE, sum};
use crate::document::{ClusterResult, Document, OutageResult, ShardResult, redirects_by_kind};
use crate::view::cells::{self, significant};
use crate::view::{Cell, Column, Line, Row, Table, Text, Tone};

/// Most outages beside the worst one whose shards are named.
const OTHERS_NAMED_MAX: usize = 2;

/// Share beyond the mean from which on the slots of a node are told to be more than those of the others.
const UNEVEN: f64 = 0.01;

/// Most rows of a table.
const ROWS_MAX: usize = 100;

/// Replies by which an outage is told.
const REPLIES_SHOWN_MAX: usize = 2;

/// The line on the cluster, and those on its outages; none where the servers are no cluster.
pub(super) fn lines(document: &Document) -> Vec<Line> {
    let Some(cluster) = &document.cluster else { return Vec::new() };
    let words = [Some(shards_words(cluster)), Some(redirects_words(cluster)), map_words(cluster)];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let mut lines = vec![Line::new("Cluster", Text::plain(words.join("; ")))];
    let is_closed = document.plan.groups.iter().any(Group::is_closed_loop);
    let outages = outage_lines(cluster, is_closed).into_iter().enumerate();
    lines.extend(outages.map(|(place, words)| Line {
        label: if place == 0 { "Outage" } else { "" },
        tone: Tone::Warning,
        text: Text::plain(words),
    }));
    lines
}

/// The nodes that owned slots at the start, with their unevenness, and those that joined.
fn shards_words(cluster: &ClusterResult) -> String {
    let count =
        |is_one: fn(&ShardResult) -> bool| cluster.shards.iter().filter(|shard| is_one(shard)).count() as u64;
    let mut words = counted(count(|shard| shard.slots > 0), "shard");
    let replicas = count(ShardResult::is_replica);
    if replicas > 0 {
        words += &format!(" and {} for reads", counted(replicas, "replica"));
    }
    match cluster.imbalance.requests {
        None => {}
        Some(most) if most > OUT_OF_BALANCE => {
            words += &format!(", the busiest with {} times the mean", significant(most));
        }
        Some(most) if most > 1.0 => words += &format!(", even to {}", percent(most - 1.0)),
        Some(_) => words += ", even",
    }
    words += &slots_words(cluster).unwrap_or_default();
    let joined = count(|shard| shard.joined && shard.slots_at_end > 0);
    if joined > 0 {
        words += &format!(", {} joined or took over", counted(joined, "node"));
    }
    words
}

/// The unevenness of the slots, from which that of the requests may follow; `None` where they are as even as they can be.
fn slots_words(cluster: &ClusterResult) -> Option<String> {
    let slots = cluster.shards.iter().filter(|shard| shard.slots > 0).map(|shard| f64::from(shard.slots));
    let (count, all, most) = slots
        .fold((0.0, 0.0, 0.0_f64), |(count, all, most), slots| (count + 1.0, all + slots, most.max(slots)));
    let over = most * count / all - 1.0;
    (over > UNEVEN).then(|| format!(", slots even to {}", percent(over)))
}

/// The redirects by their kinds, and what became of the requests.
fn redirects_words(cluster: &ClusterResult) -> String {
    let counts = &cluster.redirects;
    if counts.is_zero() {
        return "no redirects".to_owned();
    }
    let mut words = format!("{} redirected and answered", counted(counts.followed, "request"));
    if let Some(later_us) = cluster.hop_us.as_ref().and_then(|hops| hops.p50) {
        words += &format!(" {} later at p50", cells::time(later_us));
    }
    if counts.given_up > 0 {
        words += &format!(", {} given up", grouped(counts.given_up));
    }
    let kinds = redirects_by_kind(counts).map(|(kind, count)| (kind.to_uppercase(), count));
    let repeated = [("repeated".to_owned(), counts.repeated)];
    let kinds = kinds.into_iter().chain(repeated).filter(|(_, count)| *count > 0);
    let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{} {kind}", grouped(count))).collect();
    if kinds.is_empty() { words } else { format!("{words} ({})", kinds.join(", ")) }
}

/// Faults of the map of slots; `None` where it had none.
fn map_words(cluster: &ClusterResult) -> Option<String> {
    let unusable = (cluster.unusable > 0)
        .then(|| format!("{} without a usable name", counted(cluster.unusable, "node")));
    let failed = (cluster.refreshes_failed > 0).then(|| {
        format!("{} for the map of slots without an answer", counted(cluster.refreshes_failed, "question"))
    });
    let words: Vec<String> = unusable.into_iter().chain(failed).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The outage with the most lost requests, then a line on all others and on closed loops.
fn outage_lines(cluster: &ClusterResult, is_closed: bool) -> Vec<String> {
    let mut worst: Vec<&OutageResult> = cluster.outages.iter().collect();
    worst.sort_by_key(|outage| Reverse(outage.not_right()));
    let Some((first, others)) = worst.split_first() else { return Vec::new() };
    let mut last = Vec::new();
    let more = (others.len() as u64).saturating_add(cluster.outages_beyond);
    if more > 0 {
        let names: BTreeSet<&str> = others.iter().map(|outage| outage.shard.as_str()).collect();
        let are_named = names.len() <= OTHERS_NAMED_MAX && cluster.outages_beyond == 0;
        let who = match are_named && !names.contains(first.shard.as_str()) {
            true => format!("also {}", names.into_iter().collect::<Vec<_>>().join(" and ")),
            false => counted(more, "more outage"),
        };
        let lost = sum(others.iter().map(|outage| outage.not_right()));
        last.push(format!("{who}, with {} lost", counted(lost, "request")));
    }
    if is_closed {
        last.push("healthy shards lost load too: in a closed loop clients wait".to_owned());
    }
    [outage_words(first)].into_iter().chain((!last.is_empty()).then(|| last.join("; "))).collect()
}

/// An outage: the shard, its time, and what became of its requests.
fn outage_words(outage: &OutageResult) -> String {
    let [from, to] = outage.below_99.map(seconds_cell);
    let worst = percent(outage.success_worst);
    let replies = replies_words(outage);
    let failed = match replies.as_str() {
        "" => "failed".to_owned(),
        replies => format!("failed ({replies})"),
    };
    let counts = [(outage.failed, failed.as_str()), (outage.late, "late"), (outage.unsent, "unsent")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| format!("{} {what}", grouped(count))).collect();
    format!("{} from {from} to {to} s: {worst} good at worst; {}", outage.shard, counts.join(", "))
}

/// The commonest replies of an outage.
fn replies_words(outage: &OutageResult) -> String {
    let mut replies: Vec<(&str, u64)> = outage.replies.iter().map(|(name, count)| (name, *count)).collect();
    replies.sort_by_key(|(_, count)| Reverse(*count));
    let shown = replies.iter().take(REPLIES_SHOWN_MAX);
    let mut shown: Vec<String> = match replies.as_slice() {
        [(name, _)] => vec![(*name).to_owned()],
        _ => shown.map(|(name, count)| format!("{name} {}", grouped(*count))).collect(),
    };
    if replies.len() > REPLIES_SHOWN_MAX {
        shown.push("and others".to_owned());
    }
    shown.join(", ")
}

/// A time of an outage, which begins and ends at tenths of a second.
fn seconds_cell(at_s: f64) -> String {
    format!("{at_s:.1}")
}

/// The tables of the shards and of the outages, as far as there are some.
pub(crate) fn tables(document: &Document) -> Vec<Table> {
    document
        .cluster
        .iter()
        .flat_map(|cluster| [shards(cluster), outages(cluster)].into_iter().flatten())
        .collect()
}

/// The table of the outages; `None` where there were none.
pub(crate) fn outages_of(document: &Document) -> Option<Table> {
    document.cluster.as_ref().and_then(outages)
}

fn shards(cluster: &ClusterResult) -> Option<Table> {
    let has_replicas = cluster.shards.iter().any(ShardResult::is_replica);
    let row = |shard: &ShardResult| {
        let times = &shard.service_us;
        let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), cells::time);
        let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), grouped);
        let share = |share: Option<f64>| {
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
        };
        let slots = match shard.slots == shard.slots_at_end {
            true => grouped(u64::from(shard.slots)),
            false => {
                format!("{} to {}", grouped(u64::from(shard.slots)), grouped(u64::from(shard.slots_at_end)))
            }
        };
        // Where replicas share the requests, the share of the slots is no measure of a node's.
        let beside_share = if has_replicas { shard.role.name().to_owned() } else { share(shard.expected) };
        vec![
            slots,
            count(shard.records),
            count(shard.requests),
            share(shard.share),
            beside_share,
            time(times.p50),
            time(times.p99),
            count(shard.errors),
        ]
    };
    let beside_share = if has_replicas { "role" } else { "of slots" };
    let names = ["slots", "records", "requests", "share", beside_share, "p50", "p99", "errors"];
    let rows = cluster.shards.iter().map(|shard| (shard.node.clone(), row(shard)));
    table("shard, service", &names, rows)
}

fn outages(cluster: &ClusterResult) -> Option<Table> {
    let row = |outage: &OutageResult| {
        let [from, to] = outage.below_99.map(seconds_cell);
        let counts = [outage.failed, outage.late, outage.unsent].map(grouped);
        let mut cells = vec![from, to, percent(outage.success_worst)];
        cells.extend(counts);
        cells
    };
    let names = ["from s", "to s", "good", "failed", "late", "unsent"];
    table("outage", &names, cluster.outages.iter().map(|outage| (outage.shard.clone(), row(outage))))
}

/// A table of figures with at most [`ROWS_MAX`] rows, and one that says how many there are beyond; `None` without rows.
fn table(
    name: &str,
    columns: &[&str],
    rows: impl ExactSizeIterator<Item = (String, Vec<String>)>,
) -> Option<Table> {
    let more = rows.len().saturating_sub(ROWS_MAX);
    let of = |(name, cells): (String, Vec<String>)| Row {
        name,
        cells: cells.into_iter().map(Cell::of).collect(),
        ..Row::default()
    };
    let mut rows: Vec<Row> = rows.take(ROWS_MAX).map(of).collect();
    if rows.is_empty() {
        return None;
    }
    if more > 0 {
        rows.push(of((format!("and {more} more"), columns.iter().map(|_| String::new()).collect())));
    }
    let column =
        |name: &&str| Column { name: (*name).to_owned(), width: 10, narrow_width: 8, ..Column::default() };
    Some(Table {
        name: name.to_owned(),
        columns: columns.iter().map(column).collect(),
        rows,
        ..Table::default()
    })
}

#[cfg(test)]
mod tests {
    use pummel_logic::plan::ReadFrom;
    use pummel_measure::measurement::Keep;
    use pummel_measure::parts::ServerRecord;

    use super::*;
    use crate::example::{self, Run};
    use crate::markdown;
    use crate::page::{self, PageOptions};
    use crate::screen::Paper;
    use crate::text::{self, Detail};

    fn words_of(document: &Document) -> Vec<String> {
        lines(document).iter().map(|line| format!("{} {}", line.label, line.text.words())).collect()
    }

    #[test]
    fn servers_that_are_no_cluster_have_no_line_and_no_table() {
        let document = Run::new(Keep::Figures).document(Clone::clone);
        assert!(lines(&document).is_empty() && tables(&document).is_empty());
    }

    #[test]
    fn a_node_that_is_far_busier_than_the_others_is_told_as_that() {
        let mut run = Run::new(Keep::Figures).on_cluster(2);
        (0..1_000).for_each(|_| run.measurement.side_times.servers[0].record(false, Some(40_000)));
        let document = run.document(Clone::clone);
        let expected = "Cluster 2 shards, the busiest with 1.34 times the mean; no redirects";
        assert_eq!(words_of(&document), [expected]);
        let all = text::run(&document, Detail::Screen, Paper::default());
        let told = "Servers  127.0.0.1:7001 got 66.9 % of the requests (mean 50.0 %)";
        assert!(all.contains(told), "replicas are asked nothing and count for no mean: {all}");
    }

    #[test]
    fn replicas_that_serve_reads_are_counted_and_have_their_role_in_the_table() {
        let mut run = Run::new(Keep::Figures).on_cluster(2);
        run.plan.cluster.read_from = ReadFrom::Any;
        let mut record = ServerRecord::default();
        (0..1_000).for_each(|_| record.record(false, Some(40_000)));
        run.measurement.side_times.servers.extend([record.clone(), record]);
        let document = run.document(Clone::clone);
        assert_eq!(
            words_of(&document),
            ["Cluster 2 shards and 2 replicas for reads, even to 1 %; no redirects"]
        );
        let all = text::run(&document, Detail::Everything, Paper::default());
        assert!(all.contains("10 connections to each node"), "{all}");
        for line in [
            "shard, service   slots records requests   share    role     p50     p99  errors",
            "127.0.0.1:7002   8,192     500    1,000  50.0 %  master 81.9 us  129 us       0",
            "127.0.0.1:7004       0       -    1,000  50.0 % replica 41.0 us 41.0 us       0",
        ] {
            assert!(all.lines().any(|own| own == line), "{line}: {all}");
        }
        let page = String::from_utf8(page::of_run(&document, &PageOptions::default())).expect("text");
        assert!(page.contains("<td>replica</td>"), "{page}");
    }

    #[test]
    fn slots_that_are_dealt_unevenly_are_told_beside_the_requests() {
        let mut run = Run::new(Keep::Figures).on_cluster(2);
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        (seen.shards[0].slots, seen.shards[1].slots) = (9_192, 7_192);
        assert_eq!(
            run.document(words_of),
            ["Cluster 2 shards, even to 1 %, slots even to 12 %; no redirects"]
        );
    }

    #[test]
    fn more_outages_of_one_shard_are_counted_and_an_open_loop_spares_the_healthy_ones() {
        let mut run = Run::new(Keep::Figures).on_cluster(3);
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        seen.shards[0].outages = [10, 20, 30].map(|from_s| example::outage(from_s, from_s * 10)).to_vec();
        seen.unusable = 1;
        let expected = [
            "Cluster 3 shards, even to 1 %; no redirects; 1 node without a usable name",
            "Outage 127.0.0.1:7001 from 30.0 to 32.5 s: 0 % good at worst; 225 failed (down 150, refused 75), 100 late, 75 unsent",
            " 2 more outages, with 300 requests lost",
        ];
        assert_eq!(run.document(words_of), expected);
    }

    #[test]
    fn everything_the_page_and_the_summary_have_tables_of_shards_and_outages() {
        let mut run = Run::new(Keep::Figures).on_cluster(3);
        let seen = run.measurement.cluster.as_mut().expect("it is a cluster");
        seen.shards[2].outages.push(example::outage(4, 400));
        let document = run.document(Clone::clone);
        let all = text::run(&document, Detail::Everything, Paper::default());
        for line in [
            "shard, service   slots records requests   share of slots     p50     p99  errors",
            "127.0.0.1:7001   5,461     333      679  34.0 %   33.3 % 64.5 us 98.3 us       0",
            "outage            from s      to s      good    failed      late    unsent",
            "127.0.0.1:7003       4.0       6.5       0 %       300       133       100",
        ] {
            assert!(all.lines().any(|own| own == line), "{line}: {all}");
        }
        assert!(!text::run(&document, Detail::Screen, Paper::default()).contains("from s"));
        let summary = String::from_utf8(markdown::of_run(&document)).expect("text");
        assert!(summary.contains("| 127.0.0.1:7003 | 4.0 | 6.5 | 0 % | 300 | 133 | 100 |"), "{summary}");
        let page = String::from_utf8(page::of_run(&document, &PageOptions::default())).expect("text");
        assert!(page.contains(">Cluster</h2>") && page.contains("<td>33.3 %</td>"), "{page}");
    }
}
