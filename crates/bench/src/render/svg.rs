//! Plots as inline SVG: points, lines and marks in a frame with axes.
//!
//! Colours are CSS classes of the page, so that plots follow its light and dark themes.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 84.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 16.0;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A dot for each point.
    Dots,
    /// Lines between the points, with dots.
    Line,
    /// A step for each point, filled to the axis.
    Steps,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// How to draw them.
    pub mark: Mark,
}

/// A plot.
pub struct Plot<'a> {
    /// What it shows, for readers who cannot see it.
    pub title: &'a str,
    /// Label of the x axis.
    pub x: &'a str,
    /// How values on the x axis are written.
    pub x_text: fn(f64) -> String,
    /// How values on the y axis are written.
    pub y_text: fn(f64) -> String,
    /// Whether the y axis begins at 0.
    pub from_zero: bool,
    /// The series; the n-th has the page's n-th colour.
    pub lines: Vec<Line>,
}

struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn of(plot: &Plot<'_>) -> Option<Frame> {
        let points = || plot.lines.iter().flat_map(|line| line.points.iter().copied());
        let range = |value: fn((f64, f64)) -> f64| {
            let ends = |(low, high): (f64, f64), v: f64| (low.min(v), high.max(v));
            points().map(value).fold((f64::INFINITY, f64::NEG_INFINITY), ends)
        };
        let (x, mut y) = (range(|p| p.0), range(|p| p.1));
        if !x.0.is_finite() || !y.0.is_finite() {
            return None;
        }
        if plot.from_zero {
            y.0 = y.0.min(0.0);
        }
        let wide = |(low, high): (f64, f64)| if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
        Some(Frame { x: wide(x), y: wide(y) })
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |v: f64, (low, high): (f64, f64)| (v - low) / (high - low);
        let across = LEFT + share(x, self.x) * (WIDTH - LEFT - RIGHT);
        (across, HEIGHT - BOTTOM - share(y, self.y) * (HEIGHT - BOTTOM - TOP))
    }
}

/// The plot; nothing if there are no points.
pub fn draw(plot: &Plot<'_>) -> String {
    let Some(frame) = Frame::of(plot) else { return String::new() };
    let mut svg = format!(
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(plot.title)
    );
    axes(&mut svg, plot, &frame);
    for (index, line) in plot.lines.iter().enumerate() {
        series(&mut svg, line, &frame, index % COLOURS);
    }
    svg.push_str("</svg><figcaption>");
    for (index, line) in plot.lines.iter().enumerate() {
        let _ = write!(svg, "<span class=\"key c{}\">■</span> {}&ensp;", index % COLOURS, escape(&line.name));
    }
    svg + "</figcaption></figure>\n"
}

/// Colours that the page defines.
const COLOURS: usize = 6;

fn axes(svg: &mut String, plot: &Plot<'_>, frame: &Frame) {
    let (low, bottom) = (LEFT, HEIGHT - BOTTOM);
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (x, y) =
            (frame.x.0 + (frame.x.1 - frame.x.0) * share, frame.y.0 + (frame.y.1 - frame.y.0) * share);
        let ((px, _), (_, py)) = (frame.place((x, frame.y.0)), frame.place((frame.x.0, y)));
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{low}\" x2=\"{:.1}\" y1=\"{py:.1}\" y2=\"{py:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{px:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            WIDTH - RIGHT,
            low - 6.0,
            py + 4.0,
            escape(&(plot.y_text)(y)),
            bottom + 16.0,
            escape(&(plot.x_text)(x)),
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 6.0,
        escape(plot.x)
    );
}

fn series(svg: &mut String, line: &Line, frame: &Frame, colour: usize) {
    let places: Vec<(f64, f64)> = line.points.iter().map(|&point| frame.place(point)).collect();
    let path = |places: &[(f64, f64)]| {
        places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
    };
    match line.mark {
        Mark::Dots => {}
        Mark::Line => {
            let _ = write!(svg, "<polyline class=\"line c{colour}\" points=\"{}\"/>", path(&places));
        }
        Mark::Steps => {
            let ground = HEIGHT - BOTTOM;
            let mut area = vec![(places[0].0, ground)];
            for pair in places.windows(2) {
                area.extend([pair[0], (pair[1].0, pair[0].1)]);
            }
            area.push((places[places.len() - 1].0, ground));
            let _ = write!(svg, "<polygon class=\"area c{colour}\" points=\"{}\"/>", path(&area));
        }
    }
    if line.mark != Mark::Steps {
        for (x, y) in places {
            let _ = write!(svg, "<circle class=\"dot c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
        }
    }
}

/// Text within HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_escapes_its_texts_and_needs_points() {
        let line = |points| Line { name: "<a>".into(), points, mark: Mark::Line };
        let text = |v: f64| format!("{v}");
        let plot = |lines| Plot { title: "t", x: "x", x_text: text, y_text: text, from_zero: true, lines };
        assert_eq!(draw(&plot(vec![line(vec![])])), "");
        let svg = draw(&plot(vec![line(vec![(1.0, 2.0), (2.0, 4.0)])]));
        assert!(svg.contains("&lt;a&gt;") && svg.contains("polyline") && !svg.contains("NaN"), "{svg}");
        assert!(!draw(&plot(vec![line(vec![(1.0, 2.0)])])).contains("NaN"));
    }
}
