//! The HTML page that figures and tables stand on: no script, no font and no picture from elsewhere.

const STYLE: &str = "
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; }
.lead { color: #555; margin-top: 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 0.8rem; padding: 0; }
.facts div { border: 1px solid #ddd; border-radius: 6px; padding: 0.6rem 0.8rem; }
.facts b { display: block; font-size: 1.35rem; } .facts span { color: #555; font-size: 0.85rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; } figcaption { color: #555; font-size: 0.9rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.25rem 0.6rem 0.25rem 0; border-bottom: 1px solid #eee; vertical-align: top; }
td.n, th.n { text-align: right; } td.bar { color: #0072b2; white-space: nowrap; }
.results { overflow-x: auto; font-size: 0.85rem; } .results td:not(:last-child) { white-space: nowrap; }
code, pre { font: 0.85rem ui-monospace, monospace; background: #f6f6f6; } pre { padding: 0.8rem; overflow-x: auto; }
.warning { border-left: 4px solid #d55e00; padding: 0.4rem 0.8rem; background: #fdf3ec; }
";

/// Text as HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text as HTML, what is between backticks as code.
pub fn prose(text: &str) -> String {
    let part = |(k, part): (usize, &str)| match k % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    text.split('`').enumerate().map(part).collect()
}

/// A whole page of a body.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_backticks_are_code() {
        assert_eq!(prose("a `b<c` & d"), "a <code>b&lt;c</code> &amp; d");
        assert_eq!(escape("\"x\""), "&quot;x&quot;");
    }
}
