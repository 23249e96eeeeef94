//! Pages of stored results: their pictures, and what a browser makes of them where one is installed.

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pummel_logic::plan::Plan;
use pummel_report::comparison::SideSource;
use pummel_report::repetition::Repetition;
use pummel_report::run_figures::RunFigures;
use serde_json::{Value, json};

fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-1/results").join(name);
    serde_json::from_slice(&fs::read(path).expect("a fixture")).expect("JSON")
}

/// The page that `pummel` makes with these words in front of the files that hold `results`.
#[track_caller]
fn page_of(folder: &Path, words: &[&str], results: &[&Value]) -> PathBuf {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pummel"));
    command.current_dir(folder).args(words);
    for (place, result) in results.iter().enumerate() {
        let name = format!("result-{place}.json");
        fs::write(folder.join(&name), serde_json::to_vec(result).expect("JSON")).expect("a file");
        command.arg(name);
    }
    let page = folder.join("page.html");
    let output = command.arg("-o").arg(&page).stdin(Stdio::null()).output().expect("it can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    page
}

/// The beginning of a picture, of which parts may be elements of SVG of their own.
const PICTURE: &str = "<svg viewBox";

/// The pictures of a page, one after the other, each for screens and for telephones.
fn pictures(page: &Path) -> String {
    let text = fs::read_to_string(page).expect("a page");
    let each = text.split(PICTURE).skip(1);
    let end = "</svg></div>";
    each.map(|rest| format!("{PICTURE}{}</svg>\n", rest.split(end).next().expect("an end"))).collect()
}

/// A result that was changed by `change`.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut result = fixture(name);
    change(&mut result);
    result
}

/// The intervals of the result, repeated until there are `count` of a second each, with folded times.
fn with_intervals(result: &mut Value, count: usize) {
    let first = result["intervals"][0].clone();
    let intervals = (0..count).map(|at| {
        let mut interval = first.clone();
        (interval["at_s"], interval["seconds"]) = (json!(at), json!(1.0));
        let height = 40 + at % 9;
        interval["sketch"] = json!({
            "response": [height, 5, 9, 30 + at % 7, 4, 0, 1], "service": [height - 2, 9, 30, 5], "unanswered": u64::from(at % 50 == 49)
        });
        interval["connections"] = json!({"open": 4 - at % 2, "lost": at % 2, "reopened": (at + 1) % 2});
        interval
    });
    result["intervals"] = intervals.collect();
    result["seconds"] = json!(count);
}

fn members(result: &mut Value, count: usize) {
    let member = result["agents"]["members"][0].clone();
    let members = (0..count).map(|place| {
        let mut member = member.clone();
        member["name"] = json!(format!("agent-{place}"));
        member["response_us"]["p99"] = json!(if place == 7 { 9_000.0 } else { 900.0 + place as f64 });
        member
    });
    result["agents"]["members"] = members.collect();
    for (at, interval) in result["intervals"].as_array_mut().expect("a list").iter_mut().enumerate() {
        let part = |place: usize| json!({"rate": 100.0 + place as f64, "p50_us": 50.0, "p99_us": if place == 7 { 9_000.0 } else { 900.0 + at as f64 }});
        interval["agents"] = (0..count).map(part).collect();
    }
}

/// A result of repeated runs whose times grow from run to run, one of them without a known p99.9.
fn repeated(count: usize) -> Value {
    let run = |place: usize| {
        let scale = 1.0 + place as f64 / 10.0;
        json!({
            "status": "complete", "seed": place, "started_unix_s": place, "seconds": 1.0, "whole_s": 1.5, "requests": 1_000,
            "rate": 1_000.0 / scale, "rate_ci": [900.0 / scale, 1_100.0 / scale], "trust": place != 1, "limit": "none",
            "response_us": {
                "p50": 50.0 * scale, "p90": 90.0 * scale, "p99": 400.0 * scale,
                "p99.9": if place == 2 { Value::Null } else { json!(900.0 * scale) },
                "ci": {"p50": [48.0 * scale, 52.0 * scale], "p99": [350.0 * scale, null]}
            }
        })
    };
    let plan: Plan = serde_json::from_value(fixture("open.json")["plan"].clone()).expect("a plan");
    let mut made = Repetition::new(&plan, Vec::new(), count as u32, Some(false));
    let figures = |place: usize| serde_json::from_value::<RunFigures>(run(place)).expect("a run");
    made.extend((0..count).map(figures), SideSource::default());
    serde_json::to_value(&made).expect("JSON")
}

const HOSTILE: &str = "</script><img src=x onerror=\"alert('1')\">\u{202e}\u{0}";

/// Results at the edges of what is drawn, by name.
fn edges() -> Vec<(&'static str, Value)> {
    vec![
        ("open", fixture("open.json")),
        (
            "interrupted",
            changed("interrupted.json", |result| {
                with_intervals(result, 3);
                result["plan"]["phases"].as_array_mut().expect("phases").iter_mut().for_each(|phase| {
                    if phase["recorded"] == true {
                        phase["stop"]["time_ns"] = json!(10_000_000_000_u64);
                    }
                });
            }),
        ),
        ("one-interval", changed("open.json", |result| with_intervals(result, 1))),
        (
            "agents-24",
            changed("agents.json", |result| {
                with_intervals(result, 8);
                members(result, 24);
            }),
        ),
        ("agents-40", changed("agents.json", |result| members(result, 40))),
        (
            "limited",
            changed("open.json", |result| {
                result["trust"] = json!({"ok": false, "says": "lag"});
            }),
        ),
        (
            "nothing",
            changed("open.json", |result| {
                result["ops"] = json!({});
                result["intervals"] = json!([]);
                result["totals"] = json!({"requests": 0, "completed": 0});
                (result["status"], result["reason"]) = (json!("partial"), json!("connection refused"));
            }),
        ),
        (
            "unknown-quantiles",
            changed("open.json", |result| {
                for (_, op) in result["ops"].as_object_mut().expect("operations") {
                    op["unsent"] = json!(1_000_000);
                }
            }),
        ),
        (
            "phases",
            changed("open.json", |result| {
                with_intervals(result, 6);
                let phase = |name: &str, at_s: f64| json!({"name": name, "at_s": at_s, "seconds": 2.0, "totals": result["totals"], "ops": result["ops"]});
                let phases = [phase("calm", 0.0), phase(HOSTILE, 2.0), phase("after", 4.0)];
                result["phases"] = json!(phases);
            }),
        ),
        ("repeated", repeated(7)),
        ("repeated-once", repeated(1)),
        (
            "hostile",
            changed("open.json", |result| {
                result["plan"]["servers"] = json!([HOSTILE]);
                result["reason"] = json!(HOSTILE);
                result["error_messages"] = json!({(HOSTILE): 3});
                let ops = result["ops"].as_object_mut().expect("operations");
                let (name, op) = ops.iter().next().map(|(name, op)| (name.clone(), op.clone())).expect("one");
                ops.remove(&name);
                ops.insert(HOSTILE.to_owned(), op);
            }),
        ),
    ]
}

#[test]
fn pictures_of_edge_cases_are_whole_for_both_widths_and_have_places_that_are_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, result) in edges() {
        let drawn = pictures(&page_of(folder.path(), &["report", "--embed", "none"], &[&result]));
        let count = drawn.matches(PICTURE).count();
        assert_eq!((count % 2, count == 0), (0, name == "nothing"), "{name}");
        assert_eq!(drawn.matches("<svg").count(), drawn.matches("</svg>").count(), "{name}");
        for wrong in ["NaN", "\"inf", "-inf", HOSTILE] {
            assert!(!drawn.contains(wrong), "{name}: {wrong}");
        }
    }
}

/// A browser that is told by a pipe what to do, in the messages of its own protocol: JSON, each ended by a NUL.
struct Browser {
    process: Child,
    tell: File,
    heard: BufReader<File>,
    /// Number of the last message.
    number: u64,
    /// The page that is told.
    session: Option<String>,
    /// Everything else that the browser said.
    events: Vec<Value>,
}

impl Browser {
    /// Starts Chromium without a network; `None` where it is not installed.
    fn start(folder: &Path) -> Option<Browser> {
        let browser = Path::new("/usr/bin/chromium");
        if !browser.exists() {
            return None;
        }
        let (tell, hear) = (folder.join("tell"), folder.join("hear"));
        let made = Command::new("mkfifo").args([&tell, &hear]).status().expect("mkfifo is there");
        assert!(made.success());
        let words = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --disable-extensions --remote-debugging-pipe \
                     \"--host-resolver-rules=MAP * 0.0.0.0\" \"--user-data-dir=$1/profile\" about:blank \
                     3<\"$1/tell\" 4>\"$1/hear\" >/dev/null 2>&1";
        let process = Command::new("sh")
            .args(["-c", words])
            .args([browser, folder])
            .stdin(Stdio::null())
            .spawn()
            .expect("a shell is there");
        let tell = OpenOptions::new().write(true).open(tell).expect("a pipe");
        let heard = BufReader::new(File::open(hear).expect("a pipe"));
        let mut browser = Browser { process, tell, heard, number: 0, session: None, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Page", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn hear(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.heard.read_until(0, &mut bytes).expect("the browser is there");
        assert_eq!(bytes.pop(), Some(0), "the browser is gone");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.tell.write_all(format!("{message}\0").as_bytes()).expect("the browser is there");
        loop {
            let said = self.hear();
            if said["id"] == self.number {
                assert!(said.get("error").is_none(), "{method}: {said}");
                return said["result"].clone();
            }
            self.events.push(said);
        }
    }

    fn open(&mut self, page: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let said = self.hear();
            self.events.push(said);
        }
    }

    fn value_of(&mut self, expression: &str) -> Value {
        let result = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        result["result"]["value"].clone()
    }

    /// Notes of the browser about the page: messages of the console, errors, violations of the policy.
    fn complaints(&self) -> Vec<&Value> {
        let methods = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        self.events.iter().filter(|event| methods.iter().any(|method| event["method"] == *method)).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_browser_complains_of_no_page_and_names_every_picture_with_and_without_its_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut browser) = Browser::start(folder.path()) else {
        eprintln!("chromium is not installed: the pages were not looked at");
        return;
    };
    let folders = ["hostile", "agents", "compared", "repeated"].map(|name| folder.path().join(name));
    folders.iter().for_each(|folder| fs::create_dir(folder).expect("a folder"));
    let edge = |wanted: &str| edges().into_iter().find(|(name, _)| *name == wanted).expect("it is there").1;
    let pages = [
        page_of(&folders[0], &["report"], &[&edge("hostile")]),
        page_of(&folders[1], &["report"], &[&edge("agents-24")]),
        page_of(&folders[2], &["compare"], &[&fixture("open.json"), &fixture("closed.json")]),
        page_of(&folders[3], &["report"], &[&edge("repeated")]),
    ];
    for page in pages {
        // What is folded away is not told.
        let text = pictures(&page);
        let folded =
            ["heat-service-t", "distributions-t"].map(|name| text.matches(&format!("id=\"{name}\"")).count());
        // Of the two drawings of a picture one is shown.
        let drawn = (text.matches(PICTURE).count() / 2 - folded.iter().sum::<usize>()) as u64;
        for is_off in [true, false] {
            browser.call("Emulation.setScriptExecutionDisabled", json!({"value": is_off}));
            browser.open(&page);
            assert!(browser.complaints().is_empty(), "{}: {:?}", page.display(), browser.complaints());
            let tree = browser.call("Accessibility.getFullAXTree", json!({}));
            let nodes = tree["nodes"].as_array().expect("nodes");
            let images: Vec<&Value> = nodes.iter().filter(|node| node["role"]["value"] == "image").collect();
            assert_eq!(images.len() as u64, drawn, "{}", page.display());
            for image in images {
                let [name, description] =
                    ["name", "description"].map(|field| image[field]["value"].as_str().unwrap_or_default());
                assert!(!name.is_empty() && !description.is_empty(), "{image}");
            }
        }
        assert_eq!(browser.value_of("document.images.length"), 0, "a hostile name became a part of the page");
        // The pointer is told what stands under it.
        let place = browser.value_of(
            "(() => { const svg = document.querySelector('figure svg'); svg.scrollIntoView(); \
             const box = svg.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height / 2]; })()",
        );
        let moved = json!({"type": "mouseMoved", "x": place[0], "y": place[1]});
        browser.call("Input.dispatchMouseEvent", moved);
        let said = browser.value_of("document.querySelector('.readout').textContent");
        let said = said.as_str().unwrap_or_default();
        let is_said = said.contains("% within") || said.starts_with("run ");
        assert!(is_said && said.contains("pointer at"), "{}: {said:?}", page.display());
        // Dragging over a picture over time enlarges a part of it.
        let drag = "(() => { const svg = [...document.querySelectorAll('svg[data-seconds]')].find((one) => one.getBoundingClientRect().width); \
                    if (!svg) return null; svg.scrollIntoView(); const box = svg.getBoundingClientRect(); \
                    return [box.left + box.width * 0.3, box.top + box.height / 2, box.left + box.width * 0.6]; })()";
        let place = browser.value_of(drag);
        if !place.is_null() {
            let mouse = |kind: &str, x: &Value| json!({"type": kind, "x": x, "y": place[1], "button": "left", "buttons": 1, "clickCount": 1});
            for (kind, x) in [("mousePressed", 0), ("mouseMoved", 2), ("mouseReleased", 2)] {
                browser.call("Input.dispatchMouseEvent", mouse(kind, &place[x]));
            }
            assert_ne!(
                browser.value_of("document.querySelectorAll('.zoomed').length"),
                0,
                "{}",
                page.display()
            );
        }
        // On a narrow screen nothing but tables and pictures reaches beyond it.
        let narrow = json!({"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": true});
        browser.call("Emulation.setDeviceMetricsOverride", narrow);
        let width = browser.value_of("document.documentElement.scrollWidth");
        assert!(width.as_u64().is_some_and(|width| width <= 360), "{}: {width}", page.display());
        browser.call("Emulation.clearDeviceMetricsOverride", json!({}));
        assert!(browser.complaints().is_empty(), "{}: {:?}", page.display(), browser.complaints());
    }
}
