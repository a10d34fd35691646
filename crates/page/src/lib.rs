//! The frame, tables and plots of hotstart's pages: self-contained, readable in light and dark, opened from a file.
//!
//! One script, `dist/page.js`, draws plots and the page of a test run in the reader's browser. `tools/page-bundle`
//! makes it from the modules in `js` and D3's scales, axes and treemap. It is committed, so a build needs no Node.
//! Drawing in the browser fits plots to the window, and a page of 50,000 tests contains only their data. This crate
//! knows neither tests nor measurements.
#![forbid(unsafe_code)]

use serde::Serialize;

const SCRIPT: &str = include_str!("../dist/page.js");
const STYLE: &str = include_str!("../js/style.css");

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// A dot for each point.
    Dots,
    /// Lines between the points, with dots.
    Line,
    /// A step for each point, filled to the axis.
    Steps,
}

/// Points of one series.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// The style.
    pub mark: Mark,
}

/// An axis.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis<'a> {
    /// The name of its values.
    pub label: &'a str,
    /// `s` for seconds, `%` for percentages, empty for plain numbers.
    pub unit: &'a str,
    /// Whether it begins at 0.
    pub zero: bool,
}

/// A plot.
#[derive(Clone, Debug, Serialize)]
pub struct Plot<'a> {
    /// A description for readers who cannot see the plot.
    pub title: &'a str,
    /// The horizontal axis.
    pub x: Axis<'a>,
    /// The vertical axis.
    pub y: Axis<'a>,
    /// The series; the n-th has the page's n-th colour.
    pub series: Vec<Series>,
}

/// Returns a page with this content, which is HTML already.
pub fn page(title: &str, content: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n{content}<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// Returns the page of a test run. The script draws it from this JSON text.
pub fn run_page(title: &str, json: &str) -> String {
    let noscript =
        "<noscript><p>This page is drawn by a script within it; allow scripts to see it.</p></noscript>\n";
    let data = format!("<script id=\"run\" type=\"application/json\">{}</script>\n", within_script(json));
    page(title, &format!("<main id=\"report\"></main>\n{noscript}{data}"))
}

/// Returns the JSON text in a page of a test run.
pub fn run_data(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("<script id=\"run\" type=\"application/json\">")?;
    rest.split_once("</script>").map(|(data, _)| data)
}

/// Returns a table in a frame that scrolls if the page is too narrow. The cells are text, which this function escapes.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |open: &str, close: &str, cells: Vec<&str>| -> String {
        cells.iter().map(|cell| format!("<{open}>{}</{close}>", escape(cell))).collect()
    };
    let head = cells("th scope=\"col\"", "th", head.to_vec());
    let row = |row: &Vec<String>| {
        format!("<tr>{}</tr>\n", cells("td", "td", row.iter().map(String::as_str).collect()))
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>{rows}</tbody></table></div>\n"
    )
}

/// Returns the plot. Empty if there are no points.
pub fn plot(plot: &Plot<'_>) -> String {
    if plot.series.iter().all(|series| series.points.is_empty()) {
        return String::new();
    }
    let spec = serde_json::to_string(plot).expect("names and numbers");
    format!(
        "<figure data-plot><script type=\"application/json\">{}</script></figure>\n",
        within_script(&spec)
    )
}

/// Escapes JSON so that it does not end the script element around it.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing() {
        let page = page("a <b>", "");
        assert!(page.contains("<title>a &lt;b&gt;</title>"));
        for reference in ["src=", "href=\"http", "@import", "url("] {
            let marked = page.replace("http://www.w3.org/", "");
            assert!(!marked.contains(reference), "{reference}");
        }
        assert_eq!(page.matches("</script>").count(), 1, "the script does not end itself");
    }

    #[test]
    fn the_bundle_is_of_these_sources() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = vec![root.join("js")];
        let mut sources = Vec::new();
        while let Some(path) = files.pop() {
            match std::fs::read_dir(&path) {
                Ok(below) => files.extend(below.map(|entry| entry.unwrap().path())),
                Err(_) if path.extension().is_some_and(|ending| ending == "css") => {}
                Err(_) => sources.push(path),
            }
        }
        let name = |path: &std::path::PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        sources.sort_by_key(name);
        sources.insert(0, root.join("package-lock.json"));
        let bytes = sources.iter().flat_map(|path| std::fs::read(path).unwrap());
        let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let told = format!("/* sources {sum:016x} */");
        assert_eq!(SCRIPT.lines().next(), Some(told.as_str()), "run tools/page-bundle");
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let json = r#"{"output":"</script><b>"}"#;
        let page = run_page("t", json);
        let data = run_data(&page).expect("its data");
        assert!(!data.contains('<'));
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(value["output"], "</script><b>");
    }

    #[test]
    fn a_plot_needs_points() {
        let axis = Axis { label: "x", unit: "s", zero: true };
        let series = |points| Series { name: "</script>".into(), points, mark: Mark::Line };
        let of = |points| plot(&Plot { title: "t", x: axis, y: axis, series: vec![series(points)] });
        assert_eq!(of(vec![]), "");
        let drawn = of(vec![(1.0, 2.0)]);
        assert!(drawn.contains(r#""mark":"line""#) && drawn.matches("</script>").count() == 1, "{drawn}");
    }
}
