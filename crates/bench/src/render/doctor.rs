//! Writes a diagnosis as text and as an HTML page.

use hotstart_page::{Axis, Mark, Plot, Series, escape, page, plot, table};

use crate::doctor::{Diagnosis, Table};

/// Returns the text for the terminal: one table for each measured part, then the advice.
pub fn text(diagnosis: &Diagnosis) -> String {
    let mut text = format!("{}\n", diagnosis.machine.line());
    diagnosis.tables.iter().for_each(|part| text += &part_text(part));
    text += "\nadvice\n";
    diagnosis.advice.iter().for_each(|line| text += &format!("  - {line}\n"));
    text + &format!("\n{}\n", closing(diagnosis))
}

/// Says how long it took, and whether other processes disturbed it.
fn closing(diagnosis: &Diagnosis) -> String {
    let took = format!("measured in {:.0} s", diagnosis.elapsed_s);
    match diagnosis.quiet.others.filter(|share| *share > 0.1) {
        Some(share) => {
            let share = share * 100.0;
            format!(
                "{took}, while other processes used {share:.0} % of the processors' time: figures are too high"
            )
        }
        None => took,
    }
}

fn part_text(part: &Table) -> String {
    let mut text = format!("\n{}\n", part.title);
    let label = part.rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0).max(20);
    if !part.rows.is_empty() {
        text += &row(&part.head, label);
    }
    part.rows.iter().for_each(|cells| text += &row(cells, label));
    part.notes.iter().for_each(|note| text += &format!("  ({note})\n"));
    part.gaps.iter().for_each(|gap| text += &format!("  ! {gap}\n"));
    text
}

fn row(cells: &[String], label: usize) -> String {
    let mut text = format!("  {:<label$}", cells[0]);
    cells[1..].iter().for_each(|cell| text += &format!("{cell:>16}"));
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Returns the HTML page.
pub fn html(diagnosis: &Diagnosis) -> String {
    let mut text = String::from("<h2>Advice</h2>\n<ul>\n");
    diagnosis.advice.iter().for_each(|line| text += &format!("<li>{}</li>\n", escape(line)));
    text += "</ul>\n";
    for part in &diagnosis.tables {
        text += &format!("<h2>{}</h2>\n", escape(&part.title));
        if !part.rows.is_empty() {
            text += &table(&part.head.iter().map(String::as_str).collect::<Vec<_>>(), &part.rows);
        }
        text += &curves(part);
        part.notes.iter().for_each(|note| text += &format!("<p class=\"soft\">{}</p>\n", escape(note)));
        part.gaps.iter().for_each(|gap| text += &format!("<p class=\"warn\">{}</p>\n", escape(gap)));
    }
    text += &format!("<p class=\"soft\">{}; {}</p>\n", escape(&diagnosis.machine.line()), closing(diagnosis));
    page("hotstart doctor", &text)
}

fn curves(part: &Table) -> String {
    let series = |curve: &crate::doctor::Curve| Series {
        name: curve.name.clone(),
        points: curve.points.clone(),
        mark: Mark::Line,
    };
    plot(&Plot {
        title: &part.title,
        x: Axis { label: &part.across, unit: "", zero: false },
        y: Axis { label: "time", unit: "s", zero: true },
        series: part.curves.iter().filter(|curve| !curve.points.is_empty()).map(series).collect(),
    })
}
