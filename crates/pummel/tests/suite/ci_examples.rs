//! The examples for CI systems: their YAML is read, and what they do with pummel is done, with one build on both sides.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::Reserved;
use tempfile::TempDir;
use yaml_rust2::{Yaml, YamlLoader};

fn read(name: &str) -> Yaml {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ci").join(name);
    let text = fs::read_to_string(&path).expect("it is there");
    YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")).remove(0)
}

/// Scripts of an example that call pummel with these words.
fn script<'a>(scripts: &[&'a str], words: &str) -> &'a str {
    let found: Vec<&str> = scripts.iter().filter(|script| script.contains(words)).copied().collect();
    assert_eq!(found.len(), 1, "one script has {words}");
    found[0]
}

/// A folder in which scripts are run beside a memcached of both builds.
struct Job {
    folder: TempDir,
    port: Reserved,
}

impl Job {
    fn new() -> Job {
        Job { folder: TempDir::new().expect("a folder"), port: Reserved::new() }
    }

    /// Runs a script as a CI system does, with the variables of the example but for those that make it long.
    fn run(&self, script: &str) -> Output {
        let server = format!("memcached -U 0 -u root -l 127.0.0.1 -p {}", self.port.port());
        let program = Path::new(env!("CARGO_BIN_EXE_pummel")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", program.display()))
            .env("SERVER", &self.port.name)
            .env("OLD", &server)
            .env("NEW", &server)
            .env("PAIRS", "2")
            .env("SUITE", "suite.toml")
            .env("PROGRAM", &server)
            .env("ROUNDS", "1")
            .env("TIME", "300ms")
            .env("GITHUB_STEP_SUMMARY", self.folder.path().join("summary.md"))
            .output()
            .expect("bash is there")
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Follows the scripts of a nightly suite twice: the second night is compared with the first.
    fn compares_two_nights(&self, suite: &str, audit: &str, comparison: &str) {
        let file = self.folder.path().join("suite.toml");
        let text = "[defaults]\nrequests = 200\nrecords = 20\nconnections = 2\n[[run]]\nname = 'reads'\n[[run]]\nname = 'writes'\noptions = '--mix set:1'\n";
        fs::write(file, text).expect("it is written");
        for night in ["first", "second"] {
            let made = self.run(suite);
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            assert_eq!(made.status.code(), Some(0), "{night}: {said}");
            let examined = self.run(audit).status.code();
            assert!(matches!(examined, Some(0 | 3)), "{night}: {examined:?}");
            // Of one round a night nothing can be judged, which does not fail the job.
            let compared = self.run(comparison);
            let said = String::from_utf8_lossy(&compared.stderr).into_owned();
            assert_eq!(compared.status.code(), Some(0), "{night}: {said}");
            fs::create_dir_all(self.folder.path().join("last")).expect("a folder");
            fs::copy(self.folder.path().join("suite.json"), self.folder.path().join("last/suite.json"))
                .expect("copied");
        }
        let compared = crate::common::value_of(&self.file("compared.json"));
        assert_eq!(compared["pairs"].as_array().map(Vec::len), Some(2), "{compared}");
        assert!(self.file("junit.xml").contains("classname=\"reads\" name=\"made\"/>"));
        assert!(self.file("compared.html").starts_with("<!doctype html>"));
        assert_eq!(crate::common::value_of(&self.file("suite.json"))["labels"]["commit"], "unknown");
    }

    fn holds_what_is_kept(&self, gate: &str, alone: &str) {
        // Two pairs decide nothing: the claims cannot be judged, which is status 1.
        let gated = self.run(gate);
        let said = String::from_utf8_lossy(&gated.stderr).into_owned();
        assert_eq!(gated.status.code(), Some(1), "{said}{}", String::from_utf8_lossy(&gated.stdout));
        let result = crate::common::value_of(&self.file("ab.json"));
        assert_eq!((&result["command"], &result["asked_pairs"]), (&"ab".into(), &2.into()));
        assert_eq!(result["sides"][0]["labels"]["commit"], "unknown");
        let run = self.run(alone);
        assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        let summary = self.file("summary.md");
        assert!(
            summary.starts_with("### ") && summary.contains("\n| response | A | B | B to A |"),
            "{summary}"
        );
        assert!(summary.contains("\n\n### "), "the second report is behind the first: {summary}");
        assert!(self.file("report.html").starts_with("<!doctype html>"));
        assert!(self.file("junit.xml").contains("name=\"complete\""));
        assert_eq!(crate::common::value_of(&self.file("run.json"))["labels"]["commit"], "unknown");
    }
}

#[test]
fn the_example_for_github_is_yaml_and_its_commands_work() {
    let workflow = read("github.yml");
    let steps = workflow["jobs"]["benchmark"]["steps"].as_vec().expect("steps");
    let scripts: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let kept = steps.iter().find_map(|step| step["with"]["path"].as_str().filter(|path| path.contains('\n')));
    assert_eq!(kept.expect("an upload").split_whitespace().count(), 4);
    Job::new().holds_what_is_kept(script(&scripts, "pummel ab "), script(&scripts, "pummel run "));
}

#[test]
fn the_nightly_suite_for_github_is_yaml_and_its_commands_work() {
    let workflow = read("nightly-github.yml");
    let steps = workflow["jobs"]["nightly"]["steps"].as_vec().expect("steps");
    let scripts: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let [suite, audit, comparison] =
        ["pummel suite ", "pummel audit ", "pummel compare "].map(|words| script(&scripts, words));
    Job::new().compares_two_nights(suite, audit, comparison);
}

#[test]
fn the_nightly_suite_for_gitlab_is_yaml_and_its_commands_work() {
    let job = &read("nightly-gitlab.yml")["nightly"];
    let list = |name: &str| {
        let lines = job[name].as_vec().expect("a list").iter();
        lines.map(|line| line.as_str().expect("a command")).collect::<Vec<_>>()
    };
    let own = list("script");
    let [suite, comparison] = ["pummel suite ", "pummel compare "].map(|words| script(&own, words));
    Job::new().compares_two_nights(suite, script(&list("after_script"), "pummel audit "), comparison);
}

#[test]
fn the_release_runs_targets_of_the_makefile_and_commands_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let makefile = fs::read_to_string(root.join("Makefile")).expect("the Makefile is there");
    let workflow = read("release.yml");
    let steps = workflow["jobs"]["release"]["steps"].as_vec().expect("steps");
    let scripts: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let words: Vec<&str> = scripts.iter().flat_map(|script| script.split_whitespace()).collect();
    let targets: Vec<&str> = words.windows(2).filter(|two| two[0] == "make").map(|two| two[1]).collect();
    assert_eq!(targets, ["deb"]);
    assert!(makefile.contains("\ndeb: static\n"), "make has what the release asks for");
    for path in words.iter().filter(|word| word.starts_with("deploy/") || **word == ".ci/run") {
        assert!(root.join(path).exists(), "{path}");
    }
    let image = fs::read_to_string(root.join("deploy/Dockerfile")).expect("it is there");
    assert!(image.contains(" AS build\n") && image.contains("COPY --from=build /image /"), "{image}");
    assert!(words.contains(&"build=target/packages/root"), "the image has the bytes of the packages");
}

#[test]
fn the_example_for_gitlab_is_yaml_and_its_commands_work() {
    let pipeline = read("gitlab.yml");
    let job = &pipeline["benchmark"];
    let list = |name: &str| {
        let lines = job[name].as_vec().expect("a list").iter();
        lines.map(|line| line.as_str().expect("a command")).collect::<Vec<_>>()
    };
    assert_eq!(job["artifacts"]["reports"]["junit"].as_str(), Some("junit.xml"));
    Job::new().holds_what_is_kept(
        script(&list("script"), "pummel ab "),
        script(&list("after_script"), "pummel run "),
    );
}
