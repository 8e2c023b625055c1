//! Arithmetic as fio has it in values: `+ - * / % ^`, parentheses, and numbers with units. Whole results only; it knows no options.

use super::error::BadValue;

/// The value of an expression; `unit` says what a suffix multiplies by.
///
/// # Errors
/// When it is no expression, or its result is no whole number from 0 on.
pub(super) fn evaluate(text: &str, unit: &dyn Fn(&str) -> Result<u64, BadValue>) -> Result<u64, BadValue> {
    let mut parser = Parser { rest: text, unit, depth: 0 };
    let value = parser.sum()?;
    if !parser.rest.trim().is_empty() {
        return Err(format!("\"{text}\" is no expression: it goes on with \"{}\"", parser.rest.trim()).into());
    }
    whole(value).ok_or_else(|| format!("{text} is {value}, no whole number from 0 on").into())
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number between 0 and 2^53"
)]
fn whole(value: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    ((0.0..EXACT).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

/// Parentheses within each other at most.
const MAX_DEPTH: u32 = 64;

struct Parser<'a> {
    rest: &'a str,
    unit: &'a dyn Fn(&str) -> Result<u64, BadValue>,
    depth: u32,
}

impl Parser<'_> {
    fn take(&mut self, signs: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let sign = rest.chars().next().filter(|sign| signs.contains(sign))?;
        self.rest = &rest[sign.len_utf8()..];
        Some(sign)
    }

    fn sum(&mut self) -> Result<f64, BadValue> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let next = self.product()?;
            value = if sign == '+' { value + next } else { value - next };
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<f64, BadValue> {
        let mut value = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let next = self.power()?;
            if next == 0.0 && sign != '*' {
                return Err("it divides by 0".into());
            }
            value = match sign {
                '*' => value * next,
                '/' => value / next,
                _ => value % next,
            };
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<f64, BadValue> {
        let base = self.operand()?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        Ok(base.powf(self.power()?))
    }

    fn operand(&mut self) -> Result<f64, BadValue> {
        if self.take(&['(']).is_none() {
            return self.number();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it has too many parentheses".into());
        }
        let value = self.sum()?;
        self.depth -= 1;
        self.take(&[')']).map(|_| value).ok_or_else(|| "a parenthesis is open at its end".into())
    }

    #[allow(clippy::cast_precision_loss, reason = "units are powers of 1000 and 1024 below 2^53")]
    fn number(&mut self) -> Result<f64, BadValue> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        let value: f64 = digits.parse().map_err(|_| "a number is missing in it")?;
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (suffix, rest) = rest.split_at(end);
        self.rest = rest;
        Ok(value * (self.unit)(suffix)? as f64)
    }
}
