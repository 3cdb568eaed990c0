//! The console: pages for people, in files that are part of the program. Anyone may have them, since they hold nothing but how
//! to ask; every question needs a token. There is no cookie, so no other site can ask in anyone's name.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::answer::{self, Answer};
use super::fault::{Fault, Reason};
use crate::api::text::hash::text_hash;

/// Where the first page is.
const HOME: &str = "/console/";

/// Where people come who leave out a part of it.
const SHORTER: [&str; 2] = ["/", "/console"];

/// Only files of the console run, show or are asked, and none in a frame. Text never becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Letters of a hash that tell one edition of a file from another.
const EDITION: usize = 16;

struct File {
    name: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($name:literal)+) => {
        [$(File { name: $name, text: include_str!(concat!("console/", $name)) }),+]
    };
}

static FILES: [File; 14] = files! {
    "index.html" "console.css" "icon.svg" "main.js" "api.js" "dom.js" "table.js" "chart.js" "store.js" "runs.js" "run.js"
    "queue.js" "refusals.js" "jobs.js"
};

/// What is answered to who asks for a file of the console; none if it is about something else.
pub(super) fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Option<Answer> {
    let file = match path.strip_prefix(HOME) {
        Some("") => FILES.first(),
        Some(name) => FILES.iter().find(|file| file.name == name),
        None => None,
    };
    let is_shorter = SHORTER.contains(&path);
    if file.is_none() && !is_shorter {
        return None;
    }
    if ![Method::GET, Method::HEAD].contains(method) {
        return Some(only_read());
    }
    Some(file.map_or_else(onward, |file| file.answer(headers)))
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Answer {
        let mut edition = text_hash(self.text);
        edition.truncate(EDITION);
        let edition = format!("\"{edition}\"");
        let mut answer = match is_known(headers, &edition) {
            true => answer::whole(StatusCode::NOT_MODIFIED, self.sort(), "".into()),
            false => answer::whole(StatusCode::OK, self.sort(), self.text.into()),
        };
        let set = answer.headers_mut();
        // Kept, but asked about each time: after an upgrade nobody works with a mixture.
        set.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-cache"),
        );
        if let Ok(edition) = HeaderValue::from_str(&edition) {
            set.insert(header::ETAG, edition);
        }
        strict(answer)
    }

    /// The type of the file, by the end of its name.
    fn sort(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        }
    }
}

/// Whether who asks has this edition.
fn is_known(headers: &HeaderMap, edition: &str) -> bool {
    let given = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut given = given.filter_map(|given| given.to_str().ok());
    given.any(|given| given.split(',').any(|one| one.trim() == edition))
}

fn onward() -> Answer {
    let mut answer = answer::whole(
        StatusCode::TEMPORARY_REDIRECT,
        "text/plain; charset=utf-8",
        HOME.into(),
    );
    let home = HeaderValue::from_static(HOME);
    answer.headers_mut().insert(header::LOCATION, home);
    strict(answer)
}

fn only_read() -> Answer {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let fault = Fault::new(
        status,
        Reason::MethodNotAllowed,
        "this path takes GET and HEAD",
    );
    let mut answer = fault.answer();
    let allowed = HeaderValue::from_static("GET, HEAD");
    answer.headers_mut().insert(header::ALLOW, allowed);
    strict(answer)
}

/// What a browser must hold to.
fn strict(mut answer: Answer) -> Answer {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        answer
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        let value = HeaderValue::from_static("same-origin");
        answer.headers_mut().insert(name, value);
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn get(path: &str, known: Option<&str>) -> Option<Answer> {
        let mut headers = HeaderMap::new();
        if let Some(known) = known {
            headers.insert(header::IF_NONE_MATCH, known.parse().unwrap());
        }
        answer(&Method::GET, path, &headers)
    }

    fn text_of(answer: &Answer, name: header::HeaderName) -> &str {
        answer.headers()[name].to_str().unwrap()
    }

    #[test]
    fn a_file_is_sent_once_for_each_edition() {
        let first = get("/console/", None).unwrap();
        assert_eq!(first.status(), 200);
        assert_eq!(
            text_of(&first, header::CONTENT_TYPE),
            "text/html; charset=utf-8"
        );
        let edition = text_of(&first, header::ETAG).to_owned();
        let again = get("/console/index.html", Some(&format!("\"x\", {edition}"))).unwrap();
        assert_eq!(again.status(), 304);
        assert_eq!(text_of(&again, header::ETAG), edition);
        assert_eq!(get("/console/", Some("\"x\"")).unwrap().status(), 200);
        let script = get("/console/main.js", Some(&edition)).unwrap();
        assert_eq!(script.status(), 200, "another file has another edition");
        assert!(text_of(&script, header::CONTENT_TYPE).starts_with("text/javascript"));
    }

    #[test]
    fn only_files_of_the_console_are_answered_and_only_to_who_reads() {
        for path in [
            "/v1/agent-runs",
            "/console/x",
            "/console/../x",
            "/console//",
            "/consolex",
            "",
        ] {
            assert!(get(path, None).is_none(), "{path}");
        }
        for path in ["/", "/console"] {
            let answer = get(path, None).unwrap();
            assert_eq!(
                (answer.status().as_u16(), text_of(&answer, header::LOCATION)),
                (307, HOME)
            );
        }
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let refused = answer(&method, "/console/", &HeaderMap::new()).unwrap();
            assert_eq!(refused.status(), 405);
            assert_eq!(text_of(&refused, header::ALLOW), "GET, HEAD");
        }
        assert!(answer(&Method::HEAD, "/console/", &HeaderMap::new()).is_some());
    }

    #[test]
    fn files_ask_for_files_that_there_are_and_for_nothing_elsewhere() {
        let names: BTreeSet<_> = FILES.iter().map(|file| file.name).collect();
        assert_eq!(names.len(), FILES.len());
        let mut asked = BTreeSet::from(["index.html".to_owned()]);
        for file in &FILES {
            let html = file.text.split("\"/console/").skip(1);
            let script = file.text.split(" from './").skip(1);
            let ends = html
                .chain(script)
                .filter_map(|rest| rest.split(['"', '\'']).next());
            asked.extend(ends.map(str::to_owned));
            let outside = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!outside.contains("://"), "{} asks elsewhere", file.name);
        }
        let asked: BTreeSet<_> = asked.iter().map(String::as_str).collect();
        assert_eq!(asked, names);
    }

    #[test]
    fn no_text_becomes_markup_and_nothing_runs_from_a_page() {
        let markup = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "createContextualFragment",
            "DOMParser",
            "srcdoc",
            "eval(",
            "new Function",
            "javascript:",
            "localStorage",
            "document.cookie",
            "<style",
            "style=",
            " onclick=\"",
            " onload=\"",
        ];
        for file in &FILES {
            for word in markup {
                assert!(!file.text.contains(word), "{}: {word}", file.name);
            }
        }
        let page = FILES[0].text;
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains("<script type=\"module\" src=\"/console/main.js\"></script>"));
    }
}
