//! What a replica can be told, one line each.

use std::{fmt, str::FromStr};

/// An order to a replica. Those to its worker wait until it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// To the worker: check the lease, then write a line to the ledger.
    Write(String),
    /// To the worker: write a line under a fence of the past, as code does that has cached one.
    WriteUnder(u64, String),
    /// To the worker: check the lease, block with the write in hand until told to [go](Self::Go), then write it.
    InHand(String),
    /// To the thread that has a write in hand.
    Go,
    /// To the worker: block its thread for so many milliseconds.
    Block(u64),
    /// To the worker: return.
    Finish,
    /// To the worker: panic.
    Panic,
    /// To the process: shut the node down, and end.
    Leave,
    /// To the process: drop the future that holds, or the handle of the election.
    Abandon,
    /// To the process: drop the runtime, and live on without.
    DropRuntime,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(text) => write!(f, "write {text}"),
            Self::WriteUnder(fence, text) => write!(f, "write-under {fence} {text}"),
            Self::InHand(text) => write!(f, "in-hand {text}"),
            Self::Go => f.write_str("go"),
            Self::Block(ms) => write!(f, "block {ms}"),
            Self::Finish => f.write_str("finish"),
            Self::Panic => f.write_str("panic"),
            Self::Leave => f.write_str("leave"),
            Self::Abandon => f.write_str("abandon"),
            Self::DropRuntime => f.write_str("drop-runtime"),
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number in {line:?}"));
        Ok(match word {
            "write" => Self::Write(rest.into()),
            "write-under" => {
                let (fence, text) = rest.split_once(' ').unwrap_or((rest, ""));
                Self::WriteUnder(number(fence)?, text.into())
            }
            "in-hand" => Self::InHand(rest.into()),
            "go" => Self::Go,
            "block" => Self::Block(number(rest)?),
            "finish" => Self::Finish,
            "panic" => Self::Panic,
            "leave" => Self::Leave,
            "abandon" => Self::Abandon,
            "drop-runtime" => Self::DropRuntime,
            _ => return Err(format!("{line:?} is no order")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_read_as_it_was_written() {
        let text = || "two words".to_owned();
        for order in [
            Order::Write(text()),
            Order::WriteUnder(7, text()),
            Order::InHand(text()),
            Order::Go,
            Order::Block(400),
            Order::Finish,
            Order::Panic,
            Order::Leave,
            Order::Abandon,
            Order::DropRuntime,
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert!("writ x".parse::<Order>().is_err() && "block x".parse::<Order>().is_err());
    }
}
