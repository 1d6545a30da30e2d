//! As much of HTTP/1.1 as an agent's client needs: one request and one answer a connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A request as it came.
pub(crate) struct Request {
    /// The path, without what follows a question mark.
    pub(crate) path: String,
    /// The body, or nothing where it is no JSON.
    pub(crate) body: Value,
}

/// One event of a stream: its name, where the wire has one, and its data.
pub(crate) type Frame = (Option<&'static str>, String);

/// Reads one request. Nothing: the other side has hung up.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split_whitespace().nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let (mut length, mut chunked, mut expects) = (0, false, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "expect" => expects = true,
            _ => {}
        }
    }
    if expects {
        (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let bytes = if chunked {
        read_chunks(&mut reader)?
    } else {
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        bytes
    };
    Ok(Some(Request { path, body: serde_json::from_slice(&bytes).unwrap_or_default() }))
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        let start = bytes.len();
        bytes.resize(start + size, 0);
        reader.read_exact(&mut bytes[start..])?;
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(bytes);
        }
    }
}

/// Answers with one JSON value.
pub(crate) fn answer(mut stream: &TcpStream, status: u16, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Answers with a stream of events, and ends it.
pub(crate) fn stream(mut stream: &TcpStream, frames: &[Frame]) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    for (name, data) in frames {
        if let Some(name) = name {
            writeln!(stream, "event: {name}")?;
        }
        write!(stream, "data: {data}\n\n")?;
    }
    Ok(())
}
