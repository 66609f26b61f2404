//! Tiles as lines for Verilog's `$readmemh`, a dot product a line.

use std::io::{self, Write};

use super::Tiles;
use crate::format::Format;
use crate::vectors::lines::write_hexadecimal;

impl Tiles {
    /// Writes every dot product as one word of hexadecimal digits: elements and scales of A, those of B,
    /// addend, random words and result, joined by `_`. The first element of each is the lowest, and an
    /// element has whole digits. Comments in front say which bits they are, after the lines of `head`.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write_readmemh(&self, head: &str, mut sink: impl Write) -> io::Result<()> {
        let [m, n, k] = self.shape();
        let ([a, b], [_, _, c, d]) = (self.inputs(), self.formats());
        let scale = |input: crate::gemm::unit::Input| {
            let format = input.scale.map_or(input.format, |scale| scale.format);
            (Some(format), input.scales(k))
        };
        let (a_scales, b_scales) = (scale(a), scale(b));
        // Random words have no format.
        let fields = [
            ("a", Some(a.format), k),
            ("scales of a", a_scales.0, a_scales.1),
            ("b", Some(b.format), k),
            ("scales of b", b_scales.0, b_scales.1),
            ("c", Some(c), 1),
            ("random words", None, self.words()),
            ("result", Some(d), 1),
        ];
        let digits = fields.map(|(_, format, count)| {
            (format.map_or(32, Format::bits).div_ceil(4) as usize, count)
        });
        let mut out = Vec::new();
        head.lines().for_each(|line| out.extend(format!("// {line}\n").bytes()));
        let mut high: usize = digits.iter().map(|(digits, count)| 4 * digits * count).sum();
        out.extend(format!("// {} words of {high} bits:\n", self.results()).bytes());
        for ((name, format, count), (digits, _)) in fields.into_iter().zip(digits) {
            if count > 0 {
                let low = high - 4 * digits * count;
                let of = format.map_or("32 bits".into(), |format| format.to_string());
                let line = format!("//   [{}:{low}] {name}: {count} of {of}\n", high - 1);
                out.extend(line.bytes());
                high = low;
            }
        }
        for tile in 0..self.count() {
            let ([a, b, c, d], [a_scales, b_scales]) = (self.tile(tile), self.scales(tile));
            let random: Vec<u64> = self.random_words(tile).into_iter().map(u64::from).collect();
            for at in 0..m * n {
                let part = |codes: &[u64], row: usize, rows: usize| -> Vec<u64> {
                    let each = codes.len() / rows;
                    codes[row * each..(row + 1) * each].to_vec()
                };
                let (i, j) = (at / n, at % n);
                let words = [
                    part(&a, i, m),
                    part(&a_scales, i, m),
                    part(&b, j, n),
                    part(&b_scales, j, n),
                    vec![c[at]],
                    part(&random, at, m * n),
                    vec![d[at]],
                ];
                let mut first = true;
                for (codes, (digits, _)) in words.iter().zip(digits).filter(|(x, _)| !x.is_empty())
                {
                    out.extend(if first { &b""[..] } else { b"_" });
                    first = false;
                    for code in codes.iter().rev() {
                        write_hexadecimal(&mut out, (*code).into(), digits, false);
                    }
                }
                out.push(b'\n');
            }
            sink.write_all(&out)?;
            out.clear();
        }
        sink.flush()
    }
}
