//! The machine of a result: what the kernel says of it, and the readers of its texts and structures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most network cards that are kept.
pub const CARDS_MAX: usize = 16;

/// Greatest number of a CPU in a list, plus one.
const CPUS_MAX: u32 = 65_536;

/// Longest text that is kept, in bytes.
const TEXT_MAX_BYTES: usize = 4_096;

/// The machine and the build of one process of a run. Fields that cannot be read are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Provenance {
    /// Name of the agent; absent in a run without agents, and for the controller's own share.
    pub agent: Option<String>,
    /// Build of the program.
    pub build: Build,
    /// Name of the machine.
    pub host: Option<String>,
    /// Name and release of the kernel, such as `Linux 6.1.0-13-amd64`.
    pub kernel: Option<String>,
    /// Command line of the kernel.
    pub kernel_command_line: Option<String>,
    /// CPUs of the machine.
    pub cpu: CpuFacts,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Swap space, in bytes.
    pub swap_bytes: Option<u64>,
    /// Kernel's setting for transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// The hypervisor, `unknown` where the CPU says that there is one but not its name; absent where none is known.
    pub hypervisor: Option<String>,
    /// Limits of the control groups.
    pub cgroup: CgroupFacts,
    /// Congestion control of new TCP connections.
    pub congestion_control: Option<String>,
    /// Network cards that are up, but for loopback.
    pub cards: Vec<CardFacts>,
}

/// The program that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Build {
    /// Version of the program.
    pub version: Option<String>,
    /// Commit that was built; absent in builds for development and from archives.
    pub commit: Option<String>,
    /// Cargo's profile, such as `release`.
    pub profile: Option<String>,
    /// The platform that it was built for, as Rust names it.
    pub target: Option<String>,
    /// Features that were switched on.
    pub features: Vec<String>,
}

/// The CPUs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CpuFacts {
    /// Model of the first CPU.
    pub model: Option<String>,
    /// CPUs that are online.
    pub online: Option<u32>,
    /// Cores of the online CPUs.
    pub cores: Option<u32>,
    /// Whether cores have several threads that are switched on.
    pub smt: Option<bool>,
    /// CPUs that the process may run on, as the kernel lists them, such as `0-3,8`.
    pub allowed: Option<String>,
    /// Whether the process may not run on all CPUs that are online.
    pub is_pinned: Option<bool>,
    /// Governor of the first allowed CPU.
    pub governor: Option<String>,
    /// Least frequency of the first allowed CPU, in kHz.
    pub frequency_min_khz: Option<u64>,
    /// Greatest frequency of the first allowed CPU, in kHz.
    pub frequency_max_khz: Option<u64>,
    /// Whether CPUs may run above their nominal frequency.
    pub boost: Option<bool>,
    /// Driver of idle states.
    pub idle_driver: Option<String>,
    /// Weaknesses of the CPU that the kernel knows, and what it does about each.
    pub mitigations: BTreeMap<String, String>,
}

/// Limits of the control groups of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CgroupFacts {
    /// CPU time that the group may use, in thousandths of a CPU; absent where there is no limit.
    pub cpu_quota_millis: Option<u64>,
    /// CPUs that the group may use, as the kernel lists them.
    pub cpuset: Option<String>,
}

/// A network card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CardFacts {
    /// Name of the card.
    pub name: String,
    /// Driver of the card.
    pub driver: Option<String>,
    /// Speed, in bits per second.
    pub bits_per_second: Option<u64>,
    /// Longest packet, in bytes.
    pub mtu: Option<u64>,
    /// Queues for receiving.
    pub receive_queues: Option<u32>,
    /// Queues for sending.
    pub transmit_queues: Option<u32>,
    /// Work that the card can do in place of the kernel, by the names of `ethtool -k`, and whether each is on.
    pub offloads: BTreeMap<String, bool>,
    /// Time that the card waits before it interrupts.
    pub coalescing: Option<Coalescing>,
    /// Whether the card can stamp packets in both directions by a clock of its own.
    pub stamps_packets: Option<bool>,
    /// Queueing discipline of the card.
    pub qdisc: Option<String>,
}

/// Time that a card waits before it interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Coalescing {
    /// Wait after received packets, in microseconds.
    pub receive_us: u32,
    /// Wait after sent packets, in microseconds.
    pub transmit_us: u32,
    /// Whether the card chooses the time for received packets itself.
    pub is_receive_adaptive: bool,
    /// Whether the card chooses the time for sent packets itself.
    pub is_transmit_adaptive: bool,
}

impl Provenance {
    /// Leaves out names, addresses and ids: the host, the agent, the names of cards, and the command line of the kernel,
    /// which may hold any of them.
    pub fn anonymise(&mut self) {
        (self.host, self.agent, self.kernel_command_line) = (None, None, None);
        for (number, card) in self.cards.iter_mut().enumerate() {
            card.name = format!("card-{}", number + 1);
        }
    }

    /// Makes the words of another process fit for a report.
    pub fn clean(&mut self, clean: &dyn Fn(&str) -> String) {
        let Provenance { agent, build, host, kernel, kernel_command_line, cpu, .. } = self;
        let texts = [agent, host, kernel, kernel_command_line].into_iter();
        let texts =
            texts.chain([&mut build.version, &mut build.commit, &mut build.profile, &mut build.target]);
        let texts = texts.chain([&mut cpu.model, &mut cpu.allowed, &mut cpu.governor, &mut cpu.idle_driver]);
        let texts = texts.chain([
            &mut self.transparent_huge_pages,
            &mut self.clock_source,
            &mut self.hypervisor,
            &mut self.cgroup.cpuset,
            &mut self.congestion_control,
        ]);
        texts.flatten().chain(&mut build.features).for_each(|words| *words = clean(words));
        let pairs = std::mem::take(&mut cpu.mitigations).into_iter();
        cpu.mitigations = pairs.take(64).map(|(name, state)| (clean(&name), clean(&state))).collect();
        self.cards.truncate(CARDS_MAX);
        for card in &mut self.cards {
            card.name = clean(&card.name);
            [&mut card.driver, &mut card.qdisc].into_iter().flatten().for_each(|words| *words = clean(words));
            let pairs = std::mem::take(&mut card.offloads).into_iter();
            card.offloads = pairs.take(64).map(|(name, is_on)| (clean(&name), is_on)).collect();
        }
    }

    /// The machine in one line, such as `Linux 6.1, 4 CPUs (2 cores, SMT) of Xeon ..., under KVM`.
    pub fn words(&self) -> String {
        let mut parts: Vec<String> = self.kernel.iter().cloned().collect();
        let cpu = &self.cpu;
        if let Some(online) = cpu.online {
            let cores = match (cpu.cores, cpu.smt) {
                (Some(cores), Some(true)) => format!(" ({cores} cores, SMT)"),
                (Some(cores), _) if cores != online => format!(" ({cores} cores)"),
                _ => String::new(),
            };
            let model = cpu.model.as_ref().map_or_else(String::new, |model| format!(" of {model}"));
            let plural = if online == 1 { "" } else { "s" };
            parts.push(format!("{online} CPU{plural}{cores}{model}"));
        }
        if let (Some(true), Some(allowed)) = (cpu.is_pinned, &cpu.allowed) {
            parts.push(format!("only on CPUs {allowed}"));
        }
        let quota = self.cgroup.cpu_quota_millis.map(|millis| millis as f64 / 1e3);
        parts.extend(quota.map(|cpus| format!("limited to {cpus} CPUs' time")));
        parts.extend(cpu.governor.as_ref().map(|governor| format!("governor {governor}")));
        parts.extend(self.clock_source.as_ref().map(|source| format!("clock {source}")));
        parts.extend(self.hypervisor.as_ref().map(|name| match name.as_str() {
            "unknown" => "virtual".to_owned(),
            name => format!("under {name}"),
        }));
        parts.join(", ")
    }
}

/// The first line of a text, without blanks around it and control characters; absent where it is empty.
pub fn line(text: &str) -> Option<String> {
    let line: String = text.lines().next()?.trim().chars().filter(|c| !c.is_control()).collect();
    let end =
        line.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= TEXT_MAX_BYTES).last();
    end.map(|end| line[..end].to_owned())
}

/// A text that is a whole number.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// A text of one digit or letter that means yes or no, as files of /sys/module have it.
pub fn yes(text: &str) -> Option<bool> {
    match text.trim() {
        "1" | "Y" => Some(true),
        "0" | "N" => Some(false),
        _ => None,
    }
}

/// The word in brackets, as in `always [madvise] never`.
pub fn selected(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    line(word)
}

/// The model of the first CPU in the beginning of `/proc/cpuinfo`. A line that is cut is not read.
pub fn cpu_model(text: &str) -> Option<String> {
    let value = |name: &str| {
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let found = whole.filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name);
        found.and_then(|(_, value)| line(value))
    };
    value("model name").or_else(|| {
        let (implementer, part) = (value("CPU implementer")?, value("CPU part")?);
        Some(format!("implementer {implementer} part {part}"))
    })
}

/// Whether the first CPU in the beginning of `/proc/cpuinfo` reports a hypervisor; absent where its flags are not there
/// whole.
pub fn is_virtual(text: &str) -> Option<bool> {
    let line = text.split_inclusive('\n').find(|line| line.starts_with("flags"))?;
    line.ends_with('\n').then(|| line.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// The CPUs in a list such as `0-3,8`; absent for other text.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if last < first || last >= CPUS_MAX || cpus.len() > CPUS_MAX as usize {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// CPUs as a list such as `0-3,8`; they ascend.
pub fn list_of(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let words = parts.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<String>>().join(",")
}

/// A figure of `/proc/meminfo` or of `/proc/PID/status`, in bytes; `None` for other text.
pub fn memory_bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The CPU time in `cpu.max` of a control group of version 2, in thousandths of a CPU; absent where there is no limit.
pub fn cpu_max(text: &str) -> Option<u64> {
    let (quota, period) = text.trim().split_once(' ')?;
    quota_of(quota.parse().ok()?, period.parse().ok()?)
}

/// The CPU time that `quota_us` in each `period_us` is, in thousandths of a CPU; absent where there is no limit (a quota of
/// -1).
pub fn quota_of(quota_us: i64, period_us: i64) -> Option<u64> {
    let (quota_us, period_us) = (u64::try_from(quota_us).ok()?, u64::try_from(period_us).ok()?);
    quota_us.checked_mul(1_000)?.checked_div(period_us).filter(|millis| *millis > 0)
}

/// Word number `at` of a structure of the kernel that consists of words of 32 bits.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at.checked_mul(4)?..)?.get(..4)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

/// The driver in `struct ethtool_drvinfo` (linux/ethtool.h).
pub fn driver(bytes: &[u8]) -> Option<String> {
    let name = bytes.get(4..36)?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    line(&String::from_utf8_lossy(&name[..end]))
}

/// The times in `struct ethtool_coalesce` (linux/ethtool.h).
pub fn coalescing(bytes: &[u8]) -> Option<Coalescing> {
    Some(Coalescing {
        receive_us: word(bytes, 1)?,
        transmit_us: word(bytes, 5)?,
        is_receive_adaptive: word(bytes, 10)? != 0,
        is_transmit_adaptive: word(bytes, 11)? != 0,
    })
}

/// Whether a card stamps packets in both directions by a clock of its own, in `struct ethtool_ts_info` (linux/ethtool.h; the
/// bits are those of linux/net_tstamp.h).
pub fn stamps_packets(bytes: &[u8]) -> Option<bool> {
    const TX_HARDWARE: u32 = 1;
    const RX_HARDWARE: u32 = 1 << 2;
    const RAW_HARDWARE: u32 = 1 << 6;
    const NEEDED: u32 = TX_HARDWARE | RX_HARDWARE | RAW_HARDWARE;
    word(bytes, 10)?;
    Some(word(bytes, 1)? & NEEDED == NEEDED)
}

/// The value in `struct ethtool_value` (linux/ethtool.h).
pub fn ethtool_value(bytes: &[u8]) -> Option<u32> {
    word(bytes, 1)
}

/// Adds the queueing discipline of each interface in a reply to RTM_GETLINK (rtnetlink(7)), by the names of the interfaces.
/// Returns whether the reply ends with these bytes; a message that is cut or false ends it.
pub fn qdiscs(bytes: &[u8], into: &mut BTreeMap<String, String>) -> bool {
    const HEADER_BYTES: usize = 16;
    const NEW_LINK: u16 = 16;
    const DONE: u16 = 3;
    const ERROR: u16 = 2;
    const INFO_BYTES: usize = 16;
    let mut rest = bytes;
    while let Some(header) = rest.get(..HEADER_BYTES) {
        let length = word(header, 0).unwrap_or(0) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let Some(message) = rest.get(..length).filter(|_| length >= HEADER_BYTES) else { return true };
        if kind == DONE || kind == ERROR {
            return true;
        }
        if let (NEW_LINK, Some(attributes)) = (kind, message.get(HEADER_BYTES + INFO_BYTES..))
            && let Some((name, qdisc)) = link(attributes)
            && into.len() < 4 * CARDS_MAX
        {
            into.insert(name, qdisc);
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    false
}

/// The name and the queueing discipline in the attributes of a link.
fn link(attributes: &[u8]) -> Option<(String, String)> {
    const NAME: u16 = 3;
    const QDISC: u16 = 6;
    let (mut name, mut qdisc) = (None, None);
    let mut rest = attributes;
    while let Some(header) = rest.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]);
        let Some(value) = rest.get(4..length) else { break };
        let text = || line(String::from_utf8_lossy(value).trim_end_matches('\0'));
        match kind {
            NAME => name = text(),
            QDISC => qdisc = text(),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some((name?, qdisc?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pummel_logic::rng::Stream;

    const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.90GHz\n\
                           flags\t\t: fpu vme hypervisor lahf_lm\n";

    /// A message of rtnetlink about an interface with these attributes.
    fn new_link(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; 16];
        for (kind, value) in attributes {
            body.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        message(16, &body)
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = (16 + body.len() as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(body);
        bytes
    }

    fn links() -> Vec<u8> {
        let first = new_link(&[(3, b"lo\0"), (6, b"noqueue\0")]);
        let second = new_link(&[(4, &[0; 4]), (6, b"fq_codel\0"), (3, b"eth0\0")]);
        [first, second, message(3, &[0; 4])].concat()
    }

    #[test]
    fn resident_memory_is_read_in_bytes_and_other_text_is_none() {
        assert_eq!(memory_bytes("Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t    1024 kB\n", "VmRSS"), Some(1 << 20));
        for text in ["", "VmRSS:\t12\n", "VmRSS:\tx kB\n", "VmRSS:\t18446744073709551615 kB\n"] {
            assert_eq!(memory_bytes(text, "VmRSS"), None, "{text}");
        }
    }

    #[test]
    fn the_texts_of_the_kernel_are_read() {
        assert_eq!(cpu_model(CPUINFO).as_deref(), Some("Intel(R) Xeon(R) Processor @ 2.90GHz"));
        assert_eq!(is_virtual(CPUINFO), Some(true));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("implementer 0x41 part 0xd0c"));
        assert_eq!(cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!((cpu_list("3-0"), cpu_list("0-99999999"), cpu_list("x")), (None, None, None));
        assert_eq!(list_of(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(selected("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(memory_bytes("MemTotal:       16 kB\nSwapTotal: 0 kB\n", "MemTotal"), Some(16_384));
        assert_eq!((cpu_max("150000 100000\n"), cpu_max("max 100000\n")), (Some(1_500), None));
        assert_eq!(quota_of(-1, 100_000), None);
        assert_eq!((yes("Y\n"), yes("0"), yes("on")), (Some(true), Some(false), None));
    }

    #[test]
    fn the_structures_of_the_kernel_are_read() {
        let words = |values: &[u32]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        let times = coalescing(&words(&[0x0e, 8, 0, 0, 0, 16, 0, 0, 0, 0, 1, 0])).expect("whole");
        assert_eq!((times.receive_us, times.transmit_us), (8, 16));
        assert!(times.is_receive_adaptive && !times.is_transmit_adaptive);
        let stamps = |bits: u32| stamps_packets(&words(&[0x41, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!((stamps(0x5f), stamps(0x1a), stamps_packets(&[0; 8])), (Some(true), Some(false), None));
        let mut named = vec![0; 196];
        named[4..8].copy_from_slice(b"veth");
        assert_eq!(driver(&named).as_deref(), Some("veth"));
        let mut found = BTreeMap::new();
        assert!(qdiscs(&links(), &mut found));
        assert_eq!(found.get("eth0").map(String::as_str), Some("fq_codel"));
        assert_eq!(found.len(), 2);
        assert!(!qdiscs(&new_link(&[(3, b"a\0")]), &mut found), "the reply goes on");
    }

    #[test]
    fn every_cut_and_any_bytes_are_read_without_a_panic() {
        let read = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            let mut found = BTreeMap::new();
            qdiscs(bytes, &mut found);
            let read = (driver(bytes), coalescing(bytes), ethtool_value(bytes), stamps_packets(bytes));
            std::hint::black_box(read);
            let read = (cpu_list(&text), selected(&text), memory_bytes(&text, "MemTotal"), cpu_max(&text));
            std::hint::black_box(read);
            assert!(line(&text).is_none_or(|line| line.len() <= TEXT_MAX_BYTES));
            found
        };
        for end in 0..CPUINFO.len() {
            let model = cpu_model(&CPUINFO[..end]);
            assert!(model.is_none() || model == cpu_model(CPUINFO), "{model:?}");
        }
        let whole = links();
        for end in 0..whole.len() {
            let found = read(&whole[..end]);
            assert!(found.keys().all(|name| name == "lo" || name == "eth0"), "{found:?}");
        }
        let chance = Stream::from_seed(17);
        for round in 0..20_000u64 {
            let mut bytes = whole.clone();
            for change in 0..4 {
                let draw = chance.draw(round * 4 + change);
                let place = draw as usize % bytes.len();
                bytes[place] = (draw >> 32) as u8;
            }
            read(&bytes);
        }
    }

    #[test]
    fn a_machine_without_names_tells_its_kind() {
        let card =
            CardFacts { name: "eth0".to_owned(), driver: Some("ena".to_owned()), ..CardFacts::default() };
        let mut machine = Provenance {
            host: Some("db-7".to_owned()),
            kernel: Some("Linux 6.1".to_owned()),
            kernel_command_line: Some("root=UUID=1-2".to_owned()),
            cpu: CpuFacts {
                model: Some("Xeon".to_owned()),
                online: Some(4),
                cores: Some(2),
                smt: Some(true),
                ..CpuFacts::default()
            },
            hypervisor: Some("KVM".to_owned()),
            cards: vec![card],
            ..Provenance::default()
        };
        assert_eq!(machine.words(), "Linux 6.1, 4 CPUs (2 cores, SMT) of Xeon, under KVM");
        machine.anonymise();
        let text = serde_json::to_string(&machine).expect("data");
        assert!(!text.contains("db-7") && !text.contains("UUID") && !text.contains("eth0"), "{text}");
        assert!(text.contains("ena") && text.contains("Xeon"), "{text}");
        assert_eq!(serde_json::from_str::<Provenance>(&text).expect("it is read again"), machine);
        assert_eq!(Provenance::default().words(), "");
    }

    #[test]
    fn the_words_of_another_process_are_cleaned() {
        let card = CardFacts { name: "e\u{1b}".to_owned(), ..CardFacts::default() };
        let mut machine = Provenance { cards: vec![card; 99], ..Provenance::default() };
        machine.cpu.mitigations.insert("a\u{1b}".to_owned(), "b\u{1b}".to_owned());
        machine.host = Some("h\u{1b}".to_owned());
        machine.clean(&|words| words.replace('\u{1b}', "?"));
        let text = serde_json::to_string(&machine).expect("data");
        assert!(!text.contains("u001b") && machine.cards.len() == CARDS_MAX, "{text}");
    }
}
