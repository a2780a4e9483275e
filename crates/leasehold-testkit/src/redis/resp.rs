//! The protocol of Redis, as far as a test needs it: a command out, an answer in.

use std::{
    fmt,
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// None.
    Nil,
    /// A number.
    Int(i64),
    /// Text or bytes.
    Bytes(Vec<u8>),
    /// Several.
    Array(Vec<Self>),
    /// A refusal.
    Error(String),
}

impl Reply {
    /// The text of it; that of several, line by line.
    #[must_use]
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// The number of it, written as one or as text.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            other => other.text().parse().ok(),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => Ok(()),
            Self::Int(number) => write!(f, "{number}"),
            Self::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Self::Error(error) => f.write_str(error),
            Self::Array(each) => each.iter().enumerate().try_for_each(|(at, reply)| {
                let end = if at == 0 { "" } else { "\n" };
                write!(f, "{end}{reply}")
            }),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(2);

/// Sends one command on a connection of its own.
pub(super) fn ask(to: SocketAddr, password: Option<&str>, words: &[&str]) -> io::Result<Reply> {
    let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    if let Some(password) = password {
        stream.write_all(&command(&["AUTH", password]))?;
        read(&mut reader)?;
    }
    stream.write_all(&command(words))?;
    read(&mut reader)
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (kind, rest) = line.trim_end().split_at(1.min(line.len()));
    let number = || rest.parse::<i64>().map_err(|_| io::Error::other(format!("not a length: {rest:?}")));
    Ok(match kind {
        "+" => Reply::Bytes(rest.as_bytes().to_vec()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Int(number()?),
        "$" => match usize::try_from(number()?) {
            Ok(length) => {
                let mut bytes = vec![0; length + 2];
                from.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Reply::Bytes(bytes)
            }
            Err(_) => Reply::Nil,
        },
        "*" => match usize::try_from(number()?) {
            Ok(length) => Reply::Array((0..length).map(|_| read(from)).collect::<io::Result<_>>()?),
            Err(_) => Reply::Nil,
        },
        _ => return Err(io::Error::other(format!("not an answer: {line:?}"))),
    })
}
