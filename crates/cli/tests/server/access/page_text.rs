//! The server's own page in a real browser: text from agents and people is shown as text, and no character
//! of it is invisible.

use std::io::Read as _;
use std::process::Stdio;

use super::chromium::{Browser, chromium};
use crate::shared::Server;

/// The text, and how it is shown.
const TITLES: &[(&str, &str)] = &[
    ("<script>document.title='owned'</script>", "<script>document.title='owned'</script>"),
    ("<img src=x onerror=document.title='owned'>", "<img src=x onerror=document.title='owned'>"),
    ("<svg onload=document.title='owned'>", "<svg onload=document.title='owned'>"),
    ("</td></table><iframe srcdoc='x'>", "</td></table><iframe srcdoc='x'>"),
    ("</script><script>document.title='owned'//", "</script><script>document.title='owned'//"),
    ("&lt;b&gt; &#60;b&#62;", "&lt;b&gt; &#60;b&#62;"),
    ("javascript:document.title='owned'", "javascript:document.title='owned'"),
    ("{{constructor.constructor('x')()}} ${7*7}", "{{constructor.constructor('x')()}} ${7*7}"),
    ("bidi \u{202e}gpj\u{202c} \u{2066}x\u{2069}", r"bidi \u{202e}gpj\u{202c} \u{2066}x\u{2069}"),
    ("marks \u{200e}\u{200f}\u{061c}", r"marks \u{200e}\u{200f}\u{61c}"),
    (
        "zero\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}width",
        r"zero\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}width",
    ),
    ("soft\u{ad}hyphen \u{180e}vowel", r"soft\u{ad}hyphen \u{180e}vowel"),
    ("notes \u{fff9}a\u{fffa}b\u{fffb}", r"notes \u{fff9}a\u{fffa}b\u{fffb}"),
    ("tags \u{e0001}\u{e0041}\u{e007f}", r"tags \u{e0001}\u{e0041}\u{e007f}"),
    ("controls \u{1}\u{8}\u{1b}[31m\u{7f}\u{9b}", r"controls \u{1}\u{8}\u{1b}[31m\u{7f}\u{9b}"),
    ("private \u{e000} \u{10ffff}", r"private \u{e000} \u{10ffff}"),
    ("plain äöü 漢字 עברית 🙂", "plain äöü 漢字 עברית 🙂"),
];

#[test]
fn what_the_page_shows_is_text_and_nothing_of_it_hides() {
    let server = Server::with(&["--auth", "off"]);
    for (title, _) in TITLES {
        server.session(title);
    }
    let home = tempfile::tempdir().expect("a directory");
    let Some(mut browser) = chromium(home.path()) else { return };
    // Virtual time stops during fetches.
    browser.args(["--dump-dom", "--virtual-time-budget=3000"]);
    browser.arg(format!("http://{}/", server.http)).stdout(Stdio::piped());
    let mut browser = Browser { child: browser.spawn().expect("the browser starts") };
    let mut page = String::new();
    let mut shown = browser.child.stdout.take().expect("stdout");
    shown.read_to_string(&mut page).expect("the page");
    // As a browser serializes text.
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for (title, shown) in TITLES {
        let cell = format!("<td>{}</td>", escaped(shown));
        assert!(page.contains(&cell), "{title:?} is not shown as {cell}: {page}");
    }
    assert!(page.contains("<title>agentwire</title>"), "{page}");
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    for element in ["<img", "<svg", "<iframe", "<b>"] {
        assert!(!page.contains(element), "{element}: {page}");
    }
}
