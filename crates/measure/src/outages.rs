//! Outages of a shard of a cluster: the times in which too few of its requests got a good reply.

use std::collections::BTreeMap;
use std::iter;

use pummel_logic::protocol::Fault;
use pummel_logic::time::{MILLISECOND, Nanos, SECOND};
use serde::{Deserialize, Serialize};

/// Width of a bucket of a run that is not too long.
const BUCKET_NS: Nanos = 100 * MILLISECOND;

/// Most buckets of a shard: one hour. The buckets of a longer run are twice as wide, or four times, and so on.
const BUCKETS_MAX: u64 = 36_000;

/// The buckets of no run are doubled so often: 2^64 ns have less than [`BUCKETS_MAX`] of them.
const DOUBLINGS_MAX: u32 = 24;

/// A bucket with fewer requests joins the next one.
const REQUESTS_MIN: u64 = 20;

/// Number of good buckets in a row after which an outage is over.
const GOOD_MIN: usize = 10;

/// Number of classes of latencies: below 2^10 ns, one for each doubling, and from 2^36 ns on.
const CLASSES: usize = 28;

/// Number of classes from the usual latency to a late one: 8 to 16 times as long.
const LATE_CLASSES: usize = 4;

/// The end of one request of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardOutcome {
    /// A good reply came in time, however often the request was sent.
    Right {
        /// Time from due to the reply.
        latency_ns: Nanos,
    },
    /// The request failed.
    Wrong(Fault),
    /// The request was due, and never sent.
    Unsent,
}

/// A time in which less than 99 % of the requests of a shard got a good reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// Begin of the first bucket under 99 %.
    pub from_ns: Nanos,
    /// End of the last bucket under 99 %.
    pub to_ns: Nanos,
    /// Time at which the first request was due that failed or was not sent.
    pub first_error_ns: Nanos,
    /// Time at which the last request was due that failed or was not sent.
    pub last_error_ns: Nanos,
    /// Least share of good replies in a bucket.
    pub success_worst: f64,
    /// Number of requests that failed.
    pub failed: u64,
    /// Number of good replies that took 8 to 16 times as long as the median of the second before the outage, or longer: latencies
    /// are known as powers of two. 0 where that second has no good reply.
    pub late: u64,
    /// Number of requests that were due and never sent.
    pub unsent: u64,
    /// Number of failed requests by the kind of their error.
    pub replies: BTreeMap<Fault, u64>,
}

impl Outage {
    /// Adds another process' requests of the same outage.
    fn merge(&mut self, other: &Outage) {
        self.from_ns = self.from_ns.min(other.from_ns);
        self.to_ns = self.to_ns.max(other.to_ns);
        self.first_error_ns = self.first_error_ns.min(other.first_error_ns);
        self.last_error_ns = self.last_error_ns.max(other.last_error_ns);
        self.success_worst = self.success_worst.min(other.success_worst);
        self.failed = self.failed.saturating_add(other.failed);
        self.late = self.late.saturating_add(other.late);
        self.unsent = self.unsent.saturating_add(other.unsent);
        for (reply, count) in &other.replies {
            let own = self.replies.entry(*reply).or_default();
            *own = own.saturating_add(*count);
        }
    }
}

/// Adds the outages that another process has seen of the same shard. Those between which no outage would have ended are one.
pub fn merge_outages(own: &mut Vec<Outage>, others: &[Outage]) {
    let mut all = std::mem::take(own);
    all.extend_from_slice(others);
    all.sort_by_key(|outage| outage.from_ns);
    for outage in all {
        match own.last_mut() {
            Some(last) if outage.from_ns < last.to_ns.saturating_add(GOOD_MIN as u64 * BUCKET_NS) => {
                last.merge(&outage)
            }
            _ => own.push(outage),
        }
    }
}

/// The requests of a shard by the times at which they were due, in buckets of equal width that begin at multiples of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct ShardBuckets {
    /// Number of times that the width was doubled.
    doublings: u32,
    /// Number of the first bucket; bucket n begins at n times the width.
    first: u64,
    buckets: Vec<Bucket>,
}

/// Buckets as another process has written them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    doublings: u32,
    first: u64,
    buckets: Vec<Bucket>,
}

impl TryFrom<Unchecked> for ShardBuckets {
    type Error = &'static str;

    fn try_from(unchecked: Unchecked) -> Result<ShardBuckets, &'static str> {
        let Unchecked { doublings, first, buckets } = unchecked;
        let count = buckets.len() as u64;
        if count > BUCKETS_MAX || doublings > DOUBLINGS_MAX {
            return Err("a shard has too many buckets, or too wide ones");
        }
        let begin_of_last = first.checked_add(count.saturating_sub(1));
        match begin_of_last.and_then(|last| last.checked_mul(BUCKET_NS << doublings)) {
            Some(_) => Ok(ShardBuckets { doublings, first, buckets }),
            None => Err("a bucket begins after the end of time"),
        }
    }
}

/// The requests that were due in the time of one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bucket {
    /// Number of good replies by the class of their latency.
    right: [u32; CLASSES],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_right: Option<Box<NotRight>>,
}

/// The requests of a bucket that got no good reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotRight {
    /// Time at which the first of them was due.
    first_ns: Nanos,
    /// Time at which the last of them was due.
    last_ns: Nanos,
    unsent: u32,
    /// Number of failed requests by the kind of their error.
    wrong: [u32; Fault::COUNT],
}

/// Neighbouring buckets that are judged as one, because all but the last have few requests together.
#[derive(Clone, Copy, Debug)]
struct Joined {
    /// Place of the first bucket, which has requests.
    begin: usize,
    /// Place behind the last bucket.
    behind: usize,
    asked: u64,
    right: u64,
}

impl ShardBuckets {
    /// Counts a request that was due at this time. In closed loop it is the time at which the request was ready.
    pub fn note(&mut self, at_ns: Nanos, outcome: ShardOutcome) {
        let number = at_ns / self.width_ns();
        if number < self.first || number - self.first >= self.buckets.len() as u64 {
            self.reach(at_ns, at_ns);
        }
        let place = (at_ns / self.width_ns() - self.first) as usize;
        self.buckets[place].note(at_ns, outcome);
    }

    /// Adds all requests that `other` has counted.
    pub fn merge(&mut self, other: &ShardBuckets) {
        if other.buckets.is_empty() {
            return;
        }
        while self.doublings < other.doublings {
            self.double();
        }
        let begin = |number: u64| number * other.width_ns();
        self.reach(begin(other.first), begin(other.first + other.buckets.len() as u64 - 1));
        for (number, bucket) in (other.first..).zip(&other.buckets) {
            let place = (number >> (self.doublings - other.doublings)) - self.first;
            self.buckets[place as usize].merge(bucket);
        }
    }

    /// Finds the outages, in the order of time. An outage opens at a bucket under 99 %, and ends before 10 in a row that are not.
    pub fn outages(&self) -> Vec<Outage> {
        let joined = self.joined();
        let mut outages = Vec::new();
        let mut open: Option<(usize, usize)> = None;
        for (place, bucket) in joined.iter().enumerate() {
            match open {
                _ if bucket.is_bad() => open = Some((open.map_or(place, |(first, _)| first), place)),
                Some((first, last)) if place - last == GOOD_MIN => {
                    outages.push(self.outage(&joined[first..=last]));
                    open = None;
                }
                _ => {}
            }
        }
        outages.extend(open.map(|(first, last)| self.outage(&joined[first..=last])));
        outages
    }

    fn width_ns(&self) -> Nanos {
        BUCKET_NS << self.doublings
    }

    /// Makes buckets for both times and for all between them, doubling their width where they would be too many.
    fn reach(&mut self, from_ns: Nanos, to_ns: Nanos) {
        let (first, behind) = loop {
            let (from, behind) = (from_ns / self.width_ns(), to_ns / self.width_ns() + 1);
            let own = if self.buckets.is_empty() { from } else { self.first };
            let first = own.min(from);
            let behind = behind.max(own + self.buckets.len() as u64);
            if behind - first <= BUCKETS_MAX {
                break (first, behind);
            }
            self.double();
        };
        let before = if self.buckets.is_empty() { 0 } else { self.first - first };
        if before > 0 {
            self.buckets.splice(..0, iter::repeat_n(Bucket::default(), before as usize));
        }
        self.buckets.resize((behind - first) as usize, Bucket::default());
        self.first = first;
    }

    /// Makes one bucket of every two.
    fn double(&mut self) {
        let first = self.first / 2;
        let mut wider: Vec<Bucket> = Vec::new();
        for (number, bucket) in (self.first..).zip(self.buckets.drain(..)) {
            match wider.get_mut((number / 2 - first) as usize) {
                Some(half) => half.merge(&bucket),
                None => wider.push(bucket),
            }
        }
        *self = ShardBuckets { doublings: self.doublings + 1, first, buckets: wider };
    }

    /// The buckets with requests, each of which was joined with the next ones as long as they had too few of them.
    fn joined(&self) -> Vec<Joined> {
        let mut all = Vec::new();
        let mut open: Option<Joined> = None;
        for (place, bucket) in self.buckets.iter().enumerate() {
            let (right, not_right) = (bucket.right(), bucket.failed() + bucket.unsent());
            if right + not_right == 0 {
                continue;
            }
            let joined = open.get_or_insert(Joined { begin: place, behind: place, asked: 0, right: 0 });
            joined.behind = place + 1;
            joined.asked += right + not_right;
            joined.right += right;
            if joined.asked >= REQUESTS_MIN {
                all.extend(open.take());
            }
        }
        all.extend(open);
        all
    }

    /// The outage that these buckets are, of which the first and the last are bad.
    fn outage(&self, joined: &[Joined]) -> Outage {
        let (begin, behind) = (joined[0].begin, joined[joined.len() - 1].behind);
        let time = |place: usize| (self.first + place as u64).saturating_mul(self.width_ns());
        let buckets = &self.buckets[begin..behind];
        let late_from = self.median_class_before(begin).map_or(CLASSES, |class| class + LATE_CLASSES);
        let not_right = || buckets.iter().filter_map(|bucket| bucket.not_right.as_deref());
        let count_of = |reply: Fault| not_right().map(|bucket| u64::from(bucket.wrong[reply as usize])).sum();
        let replies = Fault::ALL.map(|reply| (reply, count_of(reply)));
        Outage {
            from_ns: time(begin),
            to_ns: time(behind),
            first_error_ns: not_right().map(|bucket| bucket.first_ns).min().unwrap_or_default(),
            last_error_ns: not_right().map(|bucket| bucket.last_ns).max().unwrap_or_default(),
            success_worst: joined.iter().map(Joined::success).fold(1.0, f64::min),
            failed: buckets.iter().map(Bucket::failed).sum(),
            late: buckets.iter().map(|bucket| sum(bucket.right.get(late_from..).unwrap_or_default())).sum(),
            unsent: buckets.iter().map(Bucket::unsent).sum(),
            replies: replies.into_iter().filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// The class of the median of the good replies in the second before a bucket; `None` where it has none.
    fn median_class_before(&self, place: usize) -> Option<usize> {
        let buckets_a_second = (SECOND / self.width_ns()).max(1) as usize;
        let before = &self.buckets[place.saturating_sub(buckets_a_second)..place];
        let counts: Vec<u64> = (0..CLASSES)
            .map(|class| before.iter().map(|bucket| u64::from(bucket.right[class])).sum())
            .collect();
        let all: u64 = counts.iter().sum();
        let mut below = 0;
        counts.iter().position(|count| {
            below += count;
            below > 0 && 2 * below >= all
        })
    }
}

impl Bucket {
    fn note(&mut self, at_ns: Nanos, outcome: ShardOutcome) {
        let count = match outcome {
            ShardOutcome::Right { latency_ns } => &mut self.right[class_of(latency_ns)],
            ShardOutcome::Wrong(reply) => &mut self.not_right(at_ns, at_ns).wrong[reply as usize],
            ShardOutcome::Unsent => &mut self.not_right(at_ns, at_ns).unsent,
        };
        *count = count.saturating_add(1);
    }

    fn merge(&mut self, other: &Bucket) {
        add_all(&mut self.right, &other.right);
        if let Some(other) = &other.not_right {
            let own = self.not_right(other.first_ns, other.last_ns);
            own.unsent = own.unsent.saturating_add(other.unsent);
            add_all(&mut own.wrong, &other.wrong);
        }
    }

    /// The requests without a good reply, with the first and the last of some that are added.
    fn not_right(&mut self, first_ns: Nanos, last_ns: Nanos) -> &mut NotRight {
        let own =
            self.not_right.get_or_insert_with(|| Box::new(NotRight { first_ns, ..NotRight::default() }));
        own.first_ns = own.first_ns.min(first_ns);
        own.last_ns = own.last_ns.max(last_ns);
        own
    }

    fn right(&self) -> u64 {
        sum(&self.right)
    }

    fn failed(&self) -> u64 {
        self.not_right.as_ref().map_or(0, |not_right| sum(&not_right.wrong))
    }

    fn unsent(&self) -> u64 {
        self.not_right.as_ref().map_or(0, |not_right| u64::from(not_right.unsent))
    }
}

impl Joined {
    /// Whether less than 99 % of the requests got a good reply.
    fn is_bad(&self) -> bool {
        self.right * 100 < self.asked * 99
    }

    fn success(&self) -> f64 {
        self.right as f64 / self.asked as f64
    }
}

fn class_of(latency_ns: Nanos) -> usize {
    let bits = (Nanos::BITS - latency_ns.leading_zeros()) as usize;
    bits.saturating_sub(10).min(CLASSES - 1)
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().copied().map(u64::from).sum()
}

fn add_all(own: &mut [u32], other: &[u32]) {
    own.iter_mut().zip(other).for_each(|(own, other)| *own = own.saturating_add(*other));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};
    use proptest::sample::select;

    const USUAL: ShardOutcome = ShardOutcome::Right { latency_ns: MILLISECOND };

    const DOWN: ShardOutcome = ShardOutcome::Wrong(Fault::Down);

    const REFUSED: ShardOutcome = ShardOutcome::Wrong(Fault::Refused);

    /// Requests of one shard as they are written down: for each bucket the number of good and of other replies.
    fn shard(counts: &[(u64, u64)]) -> ShardBuckets {
        let mut shard = ShardBuckets::default();
        for (bucket, &(right, wrong)) in (0..).zip(counts) {
            fill(&mut shard, bucket, right, USUAL);
            fill(&mut shard, bucket, wrong, DOWN);
        }
        shard
    }

    /// Spreads requests over a bucket.
    fn fill(shard: &mut ShardBuckets, bucket: u64, count: u64, outcome: ShardOutcome) {
        (0..count).for_each(|n| shard.note(bucket * BUCKET_NS + n * MILLISECOND, outcome));
    }

    /// Begin, end and failed requests of each outage; times in buckets.
    fn found(shard: &ShardBuckets) -> Vec<(u64, u64, u64)> {
        let outages = shard.outages();
        outages
            .iter()
            .map(|outage| (outage.from_ns / BUCKET_NS, outage.to_ns / BUCKET_NS, outage.failed))
            .collect()
    }

    /// The outages of buckets that are written as `.` (all of 100 replies are good), `1` (one is not), `x` (two are not), `0` (none
    /// was asked), `f` (5 were asked, all good) and `b` (5 were asked, one is not good).
    fn found_in(buckets: &str) -> Vec<(u64, u64, u64)> {
        let counts = buckets.chars().map(|letter| match letter {
            '.' => (100, 0),
            '1' => (99, 1),
            'x' => (98, 2),
            '0' => (0, 0),
            'f' => (5, 0),
            'b' => (4, 1),
            other => panic!("{other} is no bucket"),
        });
        found(&shard(&counts.collect::<Vec<_>>()))
    }

    #[test]
    fn outages_open_under_99_percent_and_close_before_ten_good_buckets() {
        for (buckets, expected) in [
            ("", vec![]),
            ("0000", vec![]),
            ("..........", vec![]),
            ("..11111111..", vec![]),
            ("...x...........", vec![(3, 4, 2)]),
            ("...xx1.x...........", vec![(3, 8, 7)]),
            ("x..........", vec![(0, 1, 2)]),
            ("xx.........", vec![(0, 2, 4)]),
            ("..........x", vec![(10, 11, 2)]),
            ("....x....", vec![(4, 5, 2)]),
            ("..x.........x....", vec![(2, 13, 4)]),
            ("..x..........x....", vec![(2, 3, 2), (13, 14, 2)]),
            ("x1111111111x", vec![(0, 1, 2), (11, 12, 2)]),
            ("..x000000000000x..........", vec![(2, 16, 4)]),
            ("xxxxxxxxxxxxxxxxxxxx", vec![(0, 20, 40)]),
        ] {
            assert_eq!(found_in(buckets), expected, "{buckets}");
        }
    }

    #[test]
    fn buckets_with_few_requests_join_the_next() {
        for (buckets, expected) in [
            ("ffffffffffff", vec![]),
            ("fffffffbffff", vec![(4, 8, 1)]),
            ("f0f00ffffbff", vec![(7, 11, 1)]),
            ("bf", vec![(0, 2, 1)]),
            ("f.....b......", vec![]),
            ("f.....b1......", vec![(6, 8, 2)]),
            ("00b", vec![(2, 3, 1)]),
            ("....b", vec![(4, 5, 1)]),
            ("bfffffffffff", vec![(0, 4, 1)]),
            ("b1...x..........", vec![(0, 6, 4)]),
        ] {
            assert_eq!(found_in(buckets), expected, "{buckets}");
        }
        assert_eq!(found(&shard(&[(19, 0), (0, 1), (19, 1)])), [(0, 3, 2)]);
    }

    #[test]
    fn an_outage_says_how_its_requests_ended() {
        let mut shard = ShardBuckets::default();
        (0..40).for_each(|bucket| fill(&mut shard, bucket, 50, USUAL));
        fill(&mut shard, 12, 50, DOWN);
        fill(&mut shard, 13, 10, REFUSED);
        fill(&mut shard, 14, 7, ShardOutcome::Unsent);
        fill(&mut shard, 14, 2, DOWN);
        fill(&mut shard, 13, 30, ShardOutcome::Right { latency_ns: 40 * MILLISECOND });
        fill(&mut shard, 12, 10, ShardOutcome::Right { latency_ns: 2 * MILLISECOND });
        fill(&mut shard, 15, 10, ShardOutcome::Right { latency_ns: 40 * MILLISECOND });
        let outage = Outage {
            from_ns: 1_200 * MILLISECOND,
            to_ns: 1_500 * MILLISECOND,
            first_error_ns: 1_200 * MILLISECOND,
            last_error_ns: 1_406 * MILLISECOND,
            success_worst: 60.0 / 110.0,
            failed: 62,
            late: 30,
            unsent: 7,
            replies: BTreeMap::from([(Fault::Down, 52), (Fault::Refused, 10)]),
        };
        assert_eq!(shard.outages(), std::slice::from_ref(&outage));
        let json = serde_json::to_value(&outage).expect("it is data");
        assert_eq!(json["replies"], serde_json::json!({"down": 52, "refused": 10}));
        assert_eq!(serde_json::from_value::<Outage>(json).expect("it is an outage"), outage);
    }

    #[test]
    fn a_reply_is_late_by_the_median_of_the_second_before_the_outage() {
        let late_of = |usual_ns, latency_ns, bucket| {
            let mut shard = ShardBuckets::default();
            (0..10)
                .for_each(|at| fill(&mut shard, at, 40, ShardOutcome::Right { latency_ns: 100 * usual_ns }));
            (10..20).for_each(|at| fill(&mut shard, at, 40, ShardOutcome::Right { latency_ns: usual_ns }));
            (10..20).for_each(|at| {
                fill(&mut shard, at, 39, ShardOutcome::Right { latency_ns: 1_000 * usual_ns })
            });
            fill(&mut shard, bucket, 30, ShardOutcome::Right { latency_ns });
            fill(&mut shard, bucket, 30, REFUSED);
            shard.outages()[0].late
        };
        for usual_ns in [1 << 10, 1_500, 1 << 20, 1 << 24] {
            assert_eq!(late_of(usual_ns, 16 * usual_ns, 20), 30, "{usual_ns}");
            assert_eq!(late_of(usual_ns, 8 * usual_ns - 1, 20), 0, "{usual_ns}");
        }
        assert_eq!(late_of(1 << 20, 1 << 35, 31), 0, "the second before has no reply");
        let mut at_begin = shard(&[(0, 30)]);
        fill(&mut at_begin, 0, 30, ShardOutcome::Right { latency_ns: SECOND });
        assert_eq!(at_begin.outages()[0].late, 0);
    }

    #[test]
    fn longer_runs_have_wider_buckets() {
        let mut hour = ShardBuckets::default();
        fill(&mut hour, 0, 30, USUAL);
        fill(&mut hour, 35_999, 30, DOWN);
        assert_eq!((hour.doublings, found(&hour)), (0, vec![(35_999, 36_000, 30)]));
        fill(&mut hour, 36_000, 30, DOWN);
        assert_eq!(
            (hour.doublings, hour.buckets.len(), found(&hour)),
            (1, 18_001, vec![(35_998, 36_002, 60)])
        );
        fill(&mut hour, 36_000 * 4, 30, USUAL);
        assert_eq!((hour.doublings, found(&hour)), (3, vec![(35_992, 36_008, 60)]));
        hour.note(Nanos::MAX, REFUSED);
        hour.note(0, REFUSED);
        assert!(hour.doublings <= DOUBLINGS_MAX && hour.buckets.len() as u64 <= BUCKETS_MAX);
        assert_eq!(hour.outages().iter().map(|outage| outage.failed).sum::<u64>(), 62);
    }

    #[test]
    fn parts_with_buckets_of_different_widths_merge_to_the_whole() {
        let places = [[7, 36_005, 9], [3, 0, 72_500], [70_001, 5, 36_006], [144_001, 144_000, 143_999]];
        let mut whole = ShardBuckets::default();
        let mut parts = places.map(|_| ShardBuckets::default());
        for (part, buckets) in parts.iter_mut().zip(places) {
            for bucket in buckets {
                for shard in [&mut whole, &mut *part] {
                    fill(shard, bucket, 25, USUAL);
                    fill(shard, bucket, bucket % 3, REFUSED);
                }
            }
        }
        assert_eq!(parts.each_ref().map(|part| part.doublings), [0, 2, 1, 0]);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let mut merged = ShardBuckets::default();
            order.iter().for_each(|&part| merged.merge(&parts[part]));
            assert_eq!(merged, whole, "{order:?}");
        }
        assert_eq!(whole.doublings, 3);
    }

    #[test]
    fn buckets_of_another_process_are_checked() {
        let mut shard = shard(&[(30, 1), (0, 0), (5, 5)]);
        shard.note(7, ShardOutcome::Unsent);
        let json = serde_json::to_string(&shard).expect("it is data");
        assert_eq!(serde_json::from_str::<ShardBuckets>(&json).expect("it is checked"), shard);
        let read = |doublings: u32, first: u64, count: usize| {
            let bucket = serde_json::to_value(Bucket::default()).expect("it is data");
            let buckets = vec![bucket; count];
            let value = serde_json::json!({"doublings": doublings, "first": first, "buckets": buckets});
            serde_json::from_value::<ShardBuckets>(value)
        };
        assert!(read(0, 0, 0).is_ok_and(|shard| shard == ShardBuckets::default()));
        assert!(read(22, 0, 36_000).is_ok() && read(DOUBLINGS_MAX, 0, 1).is_ok());
        for (doublings, first, count) in
            [(24, 0, 36_000), (25, 0, 1), (0, 0, 36_001), (0, u64::MAX, 2), (0, u64::MAX / 1_000, 1)]
        {
            assert!(read(doublings, first, count).is_err(), "{doublings} {first} {count}");
        }
    }

    const OUTCOMES: [ShardOutcome; 5] =
        [USUAL, ShardOutcome::Right { latency_ns: SECOND }, DOWN, REFUSED, ShardOutcome::Unsent];

    proptest! {
        #[test]
        fn parts_in_any_order_merge_to_the_whole(
            notes in vec((0u64..40, 20u32..34, select(&OUTCOMES[..]), 0usize..3), 0..300),
            farthest in 20u32..34,
        ) {
            let mut parts = [ShardBuckets::default(), ShardBuckets::default(), ShardBuckets::default()];
            let mut whole = ShardBuckets::default();
            for (number, scale, outcome, part) in notes {
                let at_ns = number << scale.min(farthest);
                whole.note(at_ns, outcome);
                parts[part].note(at_ns, outcome);
            }
            for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
                let mut merged = ShardBuckets::default();
                order.iter().for_each(|&part| merged.merge(&parts[part]));
                prop_assert_eq!(&merged, &whole);
                prop_assert_eq!(merged.outages(), whole.outages());
            }
        }
    }
}
