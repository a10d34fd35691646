//! The frame of a self-contained page: it loads nothing, and is readable in light and dark.

use crate::render::svg::escape;

const STYLE: &str = "\
:root{color-scheme:light dark;--ground:#fff;--text:#1b1f24;--soft:#59636e;--edge:#d8dee4;--c0:#0969da;--c1:#bc4c00;\
--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;--c5:#7d6b00}\
@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--text:#e6edf3;--soft:#9198a1;--edge:#30363d;--c0:#58a6ff;\
--c1:#ffa657;--c2:#56d364;--c3:#bc8cff;--c4:#ff7bc0;--c5:#e3c000}}\
body{background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}\
th,td{padding:.2rem .7rem;border-bottom:1px solid var(--edge);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}figure{margin:1rem 0}svg{width:100%;height:auto}\
svg text{fill:var(--soft);font:12px system-ui,sans-serif}.grid{stroke:var(--edge)}.line{fill:none;stroke-width:1.5}\
.area{fill-opacity:.35}figcaption,.soft{color:var(--soft);font-size:.9rem}.verdict{font-size:1.1rem}\
.warn{border-left:4px solid var(--c1);padding-left:.8rem}\
.line.c0,.area.c0{stroke:var(--c0)}.line.c1,.area.c1{stroke:var(--c1)}.line.c2,.area.c2{stroke:var(--c2)}\
.line.c3,.area.c3{stroke:var(--c3)}.line.c4,.area.c4{stroke:var(--c4)}.line.c5,.area.c5{stroke:var(--c5)}\
.dot.c0,.area.c0{fill:var(--c0)}.dot.c1,.area.c1{fill:var(--c1)}.dot.c2,.area.c2{fill:var(--c2)}\
.dot.c3,.area.c3{fill:var(--c3)}.dot.c4,.area.c4{fill:var(--c4)}.dot.c5,.area.c5{fill:var(--c5)}\
.key.c0{color:var(--c0)}.key.c1{color:var(--c1)}.key.c2{color:var(--c2)}.key.c3{color:var(--c3)}\
.key.c4{color:var(--c4)}.key.c5{color:var(--c5)}";

/// A page of this content, which is HTML already.
pub fn page(title: &str, content: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n{content}</body>\n</html>\n"
    )
}

/// A table; the cells are text and are escaped here.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: Vec<&str>| -> String {
        cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect()
    };
    let mut text = format!("<table>\n<tr>{}</tr>\n", cells("th", head.to_vec()));
    for row in rows {
        text += &format!("<tr>{}</tr>\n", cells("td", row.iter().map(String::as_str).collect()));
    }
    text + "</table>\n"
}
