//! The commands of a page of Markdown: lines of its code blocks, and code in rows of its tables.

/// The names under which pummel is called.
pub const OURS: [&str; 5] = ["pummel", "mutilate", "memaslap", "memcaslap", "mcperf"];

/// Programs that a page may name and that are not run here: they change the machine, or need another one. What they say about
/// this project is checked all the same ([`false_words`]).
const OTHERS: [&str; 21] = [
    "base64",
    "cargo",
    "curl",
    "docker",
    "export",
    "git",
    "grep",
    "head",
    "kubectl",
    "ln",
    "lintian",
    "make",
    "mdbook",
    "memtier_benchmark",
    "openssl",
    "promtool",
    "redis-benchmark",
    "salloc",
    "sh",
    "sudo",
    "valkey-benchmark",
];

/// One command as a page has it.
#[derive(Clone, Debug)]
pub struct Typed {
    /// File and line.
    pub place: String,
    /// `NAME=value` in front of it.
    pub variables: Vec<(String, String)>,
    /// The program's name first.
    pub words: Vec<String>,
    /// File to which `>` leads its standard output.
    pub to_file: Option<String>,
    /// The last block of TOML above it, which is the file that it names.
    pub toml: String,
}

impl Typed {
    pub fn program(&self) -> &str {
        &self.words[0]
    }

    pub fn is_ours(&self) -> bool {
        OURS.contains(&self.program())
    }
}

/// The commands of a page, in order. A line of a block of shell that begins with an unknown program is a complaint, so
/// that no command is passed over in silence.
pub fn of_page(page: &str, text: &str) -> (Vec<Typed>, Vec<String>) {
    let (mut found, mut complaints) = (Vec::new(), Vec::new());
    let mut language: Option<String> = None;
    let (mut begun, mut toml) = (String::new(), String::new());
    for (index, line) in text.lines().enumerate() {
        let place = format!("{page}:{}", index + 1);
        if let Some(name) = line.trim_start().strip_prefix("```") {
            language = if language.is_some() { None } else { Some(name.to_owned()) };
            if name == "toml" {
                toml.clear();
            }
            continue;
        }
        let Some(language) = &language else {
            found.extend(in_table(&place, line));
            continue;
        };
        if language == "toml" {
            toml += &format!("{line}\n");
            continue;
        }
        if let Some(head) = line.trim_end().strip_suffix('\\') {
            begun += &format!("{} ", head.trim());
            continue;
        }
        let whole = std::mem::take(&mut begun) + line.trim();
        let words = whole.as_str();
        let words = words.strip_prefix("$ ").unwrap_or(words);
        for mut command in commands_of(&place, words) {
            command.toml.clone_from(&toml);
            let is_known = command.is_ours() || OTHERS.contains(&command.program());
            if is_known && !is_headline(&command) {
                found.push(command);
            } else if language == "sh" && !is_known {
                complaints
                    .push(format!("{place}: '{}' is no program that these tests know", command.program()));
            }
        }
    }
    (found, complaints)
}

/// The first line of a report or of a screen: `pummel 0.1.0: complete, ...`, `pummel cache1:11211 ...`.
fn is_headline(command: &Typed) -> bool {
    command.program() == "pummel" && command.words.get(1).is_some_and(|word| word.contains(['.', ':']))
}

/// The commands with a server in a row of a table; others there are names of commands and parts of them.
fn in_table(place: &str, line: &str) -> Vec<Typed> {
    if !line.trim_start().starts_with('|') {
        return Vec::new();
    }
    let spans = line.split('`').skip(1).step_by(2).filter(|span| span.contains(" -s "));
    spans.flat_map(|span| commands_of(place, span)).filter(Typed::is_ours).collect()
}

/// The commands of a line of shell, those behind `|`, `&&` and `;` apart.
fn commands_of(place: &str, line: &str) -> Vec<Typed> {
    let words = words_of(line);
    let parts = words.split(|word| matches!(word.as_str(), "|" | "&&" | ";"));
    parts.filter_map(|part| command_of(place, part)).collect()
}

fn command_of(place: &str, words: &[String]) -> Option<Typed> {
    let is_variable = |word: &&String| {
        let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
    };
    let variables: Vec<(String, String)> = words
        .iter()
        .take_while(is_variable)
        .filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect();
    let mut words = words[variables.len()..].to_vec();
    // What another program starts is a command of its own.
    if words.first().is_some_and(|word| word == "salloc") {
        let ours = words.iter().position(|word| OURS.contains(&word.as_str()))?;
        words.drain(..ours);
    }
    // `pummel mutilate` is `mutilate`.
    if words.len() > 1 && words[0] == "pummel" && OURS[1..].contains(&words[1].as_str()) {
        words.remove(0);
    }
    let redirection = words.iter().position(|word| word == ">");
    let to_file = redirection.and_then(|at| words.get(at + 1).cloned());
    words.truncate(redirection.unwrap_or(words.len()));
    (!words.is_empty()).then(|| Typed {
        place: place.to_owned(),
        variables,
        words,
        to_file,
        toml: String::new(),
    })
}

/// The words of a line of shell up to its remark, which is what stands behind `#` or behind three blanks.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut quote, mut blanks) = (None, 0);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if quote == Some(letter) {
            quote = None;
        } else if quote.is_some() {
            word.get_or_insert_default().push(letter);
        } else if letter == ' ' {
            words.extend(word.take());
            blanks += 1;
            if blanks >= 3 && !words.is_empty() {
                break;
            }
            continue;
        } else if matches!(letter, '\'' | '"') {
            quote = Some(letter);
            word.get_or_insert_default();
        } else if letter == '\\' {
            word.get_or_insert_default().extend(letters.next());
        } else if letter == '#' && word.is_none() {
            break;
        } else {
            word.get_or_insert_default().push(letter);
        }
        blanks = 0;
    }
    words.extend(word);
    words
}

/// Errors in what a command of another program says about this project: a target of the Makefile, a command of xtask,
/// a test program, a file.
pub fn false_words(command: &Typed, root: &std::path::Path) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("it is part of the project");
    let second = command.words.get(1).map(String::as_str).unwrap_or_default();
    let mut wrong = Vec::new();
    match command.program() {
        "make" if !read("Makefile").contains(&format!("\n{second}:")) => wrong.push(format!("make {second}")),
        "cargo" if second == "xtask" => {
            let name = command.words.get(2).map(String::as_str).unwrap_or_default();
            // The enum of its commands, of which each has a name of one word.
            let commands = read("xtask/src/main.rs");
            let variant =
                name.get(..1).unwrap_or_default().to_uppercase() + name.get(1..).unwrap_or_default();
            let is_known =
                ["(", ",", " {"].iter().any(|end| commands.contains(&format!("\n    {variant}{end}")));
            if !is_known {
                wrong.push(format!("cargo xtask {name}"));
            }
        }
        _ => {}
    }
    let test = command.words.iter().position(|word| word == "--test");
    let suite = test
        .and_then(|at| command.words.get(at + 1))
        .map(|name| format!("crates/pummel/tests/{name}/main.rs"));
    // What is named after the suite is one of its files, or a folder of them.
    let part = test.and_then(|at| command.words.get(at + 2)).map(|name| {
        let file = format!("crates/pummel/tests/suite/{name}.rs");
        if root.join(&file).exists() { file } else { format!("crates/pummel/tests/suite/{name}/mod.rs") }
    });
    let files = command.words.iter().filter(|word| {
        ["deploy/", "scripts/", "crates/", "docs/", "xtask/"].iter().any(|folder| word.starts_with(folder))
    });
    let files = files.cloned().chain(suite).chain(part);
    wrong.extend(files.filter(|file| !root.join(file).exists()));
    wrong
}

#[test]
fn commands_are_found_in_blocks_and_tables_and_remarks_are_left_out() {
    let page = "Text `pummel run -s no`.\n```sh\n# remark\npummel run -s a --b '-d 1'   words\nA=b mcperf -s a \\\n  -n 1 # it\n\
                nonsense -s a\npummel show r.json > out | head\n```\n| `mutilate -s a` | `pummel run` |\n\
                ```\npummel 0.1.0: complete\n```\n";
    let (found, complaints) = of_page("page.md", page);
    let words: Vec<String> = found.iter().map(|command| command.words.join(" ")).collect();
    let expected =
        ["pummel run -s a --b -d 1", "mcperf -s a -n 1", "pummel show r.json", "head", "mutilate -s a"];
    assert_eq!(words, expected);
    assert_eq!(found[1].variables, [("A".to_owned(), "b".to_owned())]);
    assert_eq!(found[2].to_file.as_deref(), Some("out"));
    assert_eq!(complaints, ["page.md:7: 'nonsense' is no program that these tests know"]);
}
