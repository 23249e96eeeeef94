//! The part of HTTP/1.1 that a scrape needs: the head of a request, and the head of an answer.

use crate::metrics::text::Dialect;

/// Most bytes of the head of a request.
pub const HEAD_MAX_BYTES: usize = 8 << 10;

/// A form in which metrics are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Text.
    Text(Dialect),
    /// Protobuf, each message behind its length: the only form with native histograms.
    Protobuf,
}

impl Encoding {
    /// The type of the content, as the header of an answer has it.
    pub fn content_type(self) -> &'static str {
        match self {
            Encoding::Text(Dialect::Classic) => "text/plain; version=0.0.4; charset=utf-8",
            Encoding::Text(Dialect::OpenMetrics) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            Encoding::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// The resource that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The metrics, in a form that the client reads.
    Metrics(Encoding),
    /// Whether the process is alive.
    Health,
    /// A request that is refused: the status and its words.
    Refused(u16, &'static str),
}

/// The state of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The head of a request is not whole yet.
    Part,
    /// A whole request.
    Request(Asked),
}

/// Reads the head of a request from the bytes that came so far. Bytes after the head are ignored.
pub fn read(bytes: &[u8]) -> Heard {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.or_else(|| bytes.windows(2).position(|two| two == b"\n\n"));
    let Some(end) = end else {
        return match bytes.len() >= HEAD_MAX_BYTES {
            true => Heard::Request(Asked::Refused(431, "Request Header Fields Too Large")),
            false => Heard::Part,
        };
    };
    let refused = |status, words| Heard::Request(Asked::Refused(status, words));
    let Ok(head) = std::str::from_utf8(&bytes[..end]) else { return refused(400, "Bad Request") };
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return refused(400, "Bad Request");
    };
    if !version.starts_with("HTTP/1.") {
        return refused(400, "Bad Request");
    }
    if method != "GET" {
        return refused(405, "Method Not Allowed");
    }
    let path = target.split('?').next().unwrap_or_default();
    Heard::Request(match path {
        "/metrics" => Asked::Metrics(encoding_of(lines)),
        "/healthz" => Asked::Health,
        _ => Asked::Refused(404, "Not Found"),
    })
}

/// The form that the headers of a request prefer; text if they name no known form.
fn encoding_of<'a>(headers: impl Iterator<Item = &'a str>) -> Encoding {
    let mut best = (0.0, Encoding::Text(Dialect::Classic));
    let accepted = headers.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("accept").then_some(value)
    });
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let parameters: Vec<String> = parts.map(|part| part.replace(' ', "").to_ascii_lowercase()).collect();
        let has = |wanted: &str| parameters.iter().any(|part| part == wanted);
        let encoding = match kind.as_str() {
            "application/vnd.google.protobuf"
                if has("proto=io.prometheus.client.metricfamily") && has("encoding=delimited") =>
            {
                Encoding::Protobuf
            }
            "application/openmetrics-text"
                if has("version=1.0.0") || !parameters.iter().any(|part| part.starts_with("version=")) =>
            {
                Encoding::Text(Dialect::OpenMetrics)
            }
            "text/plain" | "text/*" | "*/*" => Encoding::Text(Dialect::Classic),
            _ => continue,
        };
        let quality =
            parameters.iter().find_map(|part| part.strip_prefix("q=")?.parse::<f64>().ok()).unwrap_or(1.0);
        if quality > best.0 {
            best = (quality, encoding);
        }
    }
    best.1
}

/// An answer with its head. The connection ends after it.
pub fn answer(status: u16, words: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} {words}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/vnd.google.protobuf;\
        proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,\
        application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n\r\n";

    fn asked(request: &str) -> Asked {
        match read(request.as_bytes()) {
            Heard::Request(asked) => asked,
            Heard::Part => panic!("{request:?} is whole"),
        }
    }

    fn accepting(accept: &str) -> Asked {
        asked(&format!("GET /metrics HTTP/1.1\r\naccept: {accept}\r\n\r\n"))
    }

    #[test]
    fn a_request_that_is_cut_anywhere_is_a_part() {
        for end in 0..SCRAPE.len() {
            assert_eq!(read(&SCRAPE.as_bytes()[..end]), Heard::Part, "cut at {end}");
        }
        assert_eq!(asked(SCRAPE), Asked::Metrics(Encoding::Protobuf));
    }

    #[test]
    fn a_client_gets_the_form_that_it_likes_best_and_text_otherwise() {
        let text = Asked::Metrics(Encoding::Text(Dialect::Classic));
        let open = Asked::Metrics(Encoding::Text(Dialect::OpenMetrics));
        assert_eq!(asked("GET /metrics HTTP/1.0\n\n"), text);
        for (accept, expected) in [
            ("*/*", text),
            ("image/png", text),
            ("application/openmetrics-text; version=1.0.0; charset=utf-8, text/plain;q=0.5", open),
            ("text/plain;q=0.9,application/openmetrics-text;version=1.0.0;q=0.8", text),
            ("application/vnd.google.protobuf;proto=other;encoding=delimited", text),
            ("application/openmetrics-text;version=7.0.0", text),
            ("text/plain;q=nonsense", text),
        ] {
            assert_eq!(accepting(accept), expected, "{accept}");
        }
    }

    #[test]
    fn what_is_no_scrape_is_refused_by_its_status() {
        let refused = |request: &str| match asked(request) {
            Asked::Refused(status, _) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("POST /metrics HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(refused("GET / HTTP/1.1\r\n\r\n"), 404);
        assert_eq!(refused("GET /metrics\r\n\r\n"), 400);
        assert_eq!(refused("GET /metrics HTTP/2 x\r\n\r\n"), 400);
        assert_eq!(
            read(&[b'a'; HEAD_MAX_BYTES]),
            Heard::Request(Asked::Refused(431, "Request Header Fields Too Large"))
        );
        assert_eq!(read(b"\xff\xfe\r\n\r\n"), Heard::Request(Asked::Refused(400, "Bad Request")));
        assert_eq!(asked("GET /healthz?x HTTP/1.1\r\n\r\n"), Asked::Health);
    }

    #[test]
    fn random_bytes_never_make_it_panic() {
        let words: [&[u8]; 10] = [
            b"GET ",
            b"/metrics",
            b" HTTP/1.1",
            b"\r\n",
            b"\r\n\r\n",
            b"Accept:",
            b";q=",
            b",",
            b"\0",
            b"\xff",
        ];
        for seed in 0..20_000u64 {
            let mut bytes = Vec::new();
            for step in 0..12u64 {
                let draw = pummel_logic::rng::mix(&[seed, step]) as usize;
                bytes.extend_from_slice(words[draw % words.len()]);
            }
            let _ = read(&bytes);
        }
    }
}
