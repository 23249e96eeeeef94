//! The workloads that this program knows by name.

use super::profile::{Listed, Profile, Refusal};
use super::twitter;

/// Names of profiles, what each of them is, and their texts.
const PROFILES: &[(&str, &str, &str)] = &[
    ("cache", "an ordinary cache", include_str!("profiles/cache.toml")),
    ("fb-etc", "Facebook 2012, pool ETC", include_str!("profiles/fb-etc.toml")),
    ("fb-usr", "Facebook 2012, pool USR", include_str!("profiles/fb-usr.toml")),
    ("mutilate-fb", "mutilate's fb_key, fb_value, fb_ia", include_str!("profiles/mutilate-fb.toml")),
    ("kvcache", "Meta: key-value cache", include_str!("profiles/kvcache.toml")),
    ("kvcache-l2", "Meta: its second level", include_str!("profiles/kvcache-l2.toml")),
    ("graph-leader-assoc", "Meta: social graph, leaders", include_str!("profiles/graph-leader-assoc.toml")),
    ("graph-leader-obj", "Meta: social graph, leaders", include_str!("profiles/graph-leader-obj.toml")),
    (
        "graph-follower-assoc",
        "Meta: social graph, followers",
        include_str!("profiles/graph-follower-assoc.toml"),
    ),
    ("graph-follower-obj", "Meta: social graph, followers", include_str!("profiles/graph-follower-obj.toml")),
    ("cdn", "Meta: content delivery", include_str!("profiles/cdn.toml")),
    ("social-graph", "Meta: SocialGraph of OSDI 2020", include_str!("profiles/social-graph.toml")),
    ("rocksdb-zippydb", "Meta: ZippyDB of FAST 2020", include_str!("profiles/rocksdb-zippydb.toml")),
    ("ycsb-a", "YCSB, half updates", include_str!("profiles/ycsb-a.toml")),
    ("ycsb-b", "YCSB, 5 % updates", include_str!("profiles/ycsb-b.toml")),
    ("ycsb-c", "YCSB, reads only", include_str!("profiles/ycsb-c.toml")),
    ("ycsb-d", "YCSB, reads of what was inserted last", include_str!("profiles/ycsb-d.toml")),
    ("ycsb-e", "YCSB, scans: only with --scan-as multiget", include_str!("profiles/ycsb-e.toml")),
    (
        "ycsb-f",
        "YCSB, half reads, half reads with a write of what was read",
        include_str!("profiles/ycsb-f.toml"),
    ),
];

/// Names that users look for, and why they are not there.
const REFUSED: &[(&str, &str)] = &[
    ("fb-var", "no published figure of Facebook's pool VAR says how often it reads and writes"),
    ("fb-app", "the sizes of Facebook's pool APP are published as curves only, without numbers"),
    ("fb-sys", "the sizes of Facebook's pool SYS are published as curves only, without numbers"),
    ("twitter-5", "the published table has no figures of cluster 5"),
];

/// All workloads by name.
pub fn listed() -> Vec<Listed> {
    let own =
        PROFILES.iter().map(|(name, what, _)| Listed { name: (*name).to_owned(), what: (*what).to_owned() });
    own.chain(twitter::listed()).collect()
}

/// The workload with this name; `None` where no name is like this.
pub(super) fn find(name: &str) -> Option<Result<Profile, Refusal>> {
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Some(Err(Refusal(format!("expected a workload that can be drawn: {why}"))));
    }
    if let Some((_, _, text)) = PROFILES.iter().find(|(known, ..)| *known == name) {
        return Some(Profile::read(text));
    }
    twitter::find(name)
}

/// The known name that is most like this one, where one is.
pub(super) fn nearest(name: &str) -> Option<String> {
    let known = listed().into_iter().map(|listed| (distance(name, &listed.name), listed.name));
    known.min().filter(|(distance, _)| *distance <= 2).map(|(_, name)| name)
}

/// How many letters have to be changed, added or left out to turn one word into another (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
