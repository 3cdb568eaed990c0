//! Tables as Markdown, so that they can be put into `docs/performance.md` as they are.

use std::time::Duration;

/// A table: a row of titles, and rows of cells.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these titles.
    pub fn new(titles: &[&str]) -> Self {
        let titles = titles.iter().map(|title| (*title).to_owned());
        Self {
            rows: vec![titles.collect()],
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, columns aligned.
    pub fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            let cells: Vec<_> = cells
                .map(|(cell, &width)| format!("{cell:width$}"))
                .collect();
            text += &format!("| {} |\n", cells.join(" | "));
            if number == 0 {
                let lines: Vec<_> = widths.iter().map(|&width| "-".repeat(width)).collect();
                text += &format!("| {} |\n", lines.join(" | "));
            }
        }
        text
    }
}

/// A duration in microseconds.
pub fn micros(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

/// A number compared with its bar.
pub fn verdict(met: bool) -> String {
    if met { "met" } else { "MISSED" }.to_owned()
}

/// A number that is measured, with its bar if there is one: what is more than that misses it.
pub fn at_most(what: &str, measured: f64, unit: &str, bar: Option<f64>) -> [String; 4] {
    [
        what.to_owned(),
        format!("{measured:.1} {unit}"),
        bar.map(|bar| format!("{bar} {unit}")).unwrap_or_default(),
        bar.map(|bar| verdict(measured <= bar)).unwrap_or_default(),
    ]
}

/// A whole number with its thousands apart.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (number, expected) in [(7.0, "7"), (999.6, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(thousands(number), expected);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["what", "cost"]);
        table.row(["decode".to_owned(), micros(Duration::from_nanos(1500))]);
        let expected = "| what   | cost   |\n| ------ | ------ |\n| decode | 1.5 us |\n";
        assert_eq!(table.text(), expected);
    }
}
