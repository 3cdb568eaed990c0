//! The operator's list of hosts and networks that may be called although they are not public.

use std::net::IpAddr;

use crate::kit::config::Value;

/// Hosts and networks, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    /// One host.
    Host(String),
    /// Every host below this one; the text begins with the dot.
    Below(String),
    /// A network, by its first bits.
    Network {
        base: u128,
        mask: u128,
        is_four: bool,
    },
}

impl Allowed {
    /// Whether a host is listed, as it is written in an address.
    pub(super) fn has_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|entry| match entry {
            Entry::Host(name) => *name == host,
            Entry::Below(end) => host.len() > end.len() && host.ends_with(end.as_str()),
            Entry::Network { .. } => false,
        })
    }

    /// Whether an address lies in a network that is listed.
    pub(super) fn has_address(&self, ip: IpAddr) -> bool {
        let (bits, four) = bits(ip);
        self.0.iter().any(|entry| match entry {
            Entry::Network {
                base,
                mask,
                is_four,
            } => *is_four == four && bits & mask == *base,
            Entry::Host(_) | Entry::Below(_) => false,
        })
    }
}

/// The bits of an address, the first one on top, and whether it is IPv4.
fn bits(ip: IpAddr) -> (u128, bool) {
    match ip {
        IpAddr::V4(four) => (u128::from(four.to_bits()) << 96, true),
        IpAddr::V6(six) => (six.to_bits(), false),
    }
}

fn parse(text: &str) -> Option<Entry> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(ip) = address.parse::<IpAddr>() else {
        return match length {
            Some(_) => None,
            None => parse_host(text),
        };
    };
    let (base, is_four) = bits(ip);
    let whole = if is_four { 32 } else { 128 };
    let length: u32 = match length {
        Some(length) => length.parse().ok()?,
        None => whole,
    };
    let mask = match length {
        0 => 0,
        length if length <= whole => u128::MAX << (128 - length),
        _ => return None,
    };
    // Bits behind the network are a slip of the pen: nobody could tell which network was meant.
    (base & !mask == 0).then_some(Entry::Network {
        base,
        mask,
        is_four,
    })
}

/// A name, or `*.` and a name. A star alone would open every private network to every name.
fn parse_host(text: &str) -> Option<Entry> {
    let text = text.trim_end_matches('.').to_ascii_lowercase();
    let (name, is_below) = match text.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (&*text, false),
    };
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.bytes().all(fits)
    };
    let is_name = name.len() <= 253 && name.split('.').all(is_label);
    // A name of digits only is read as an address by resolvers.
    let is_number = name
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_name && !is_number).then(|| match is_below {
        true => Entry::Below(format!(".{name}")),
        false => Entry::Host(name.to_owned()),
    })
}

impl Value for Allowed {
    const EXPECTED: &'static str =
        "a list of hosts and networks such as git.example.com,*.team.svc,10.20.0.0/16";

    fn parse(text: &str) -> Option<Self> {
        let entries = Vec::<String>::parse(text)?;
        let entries = entries.iter().map(|entry| parse(entry));
        entries.collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_whole_or_refused() {
        for (text, is_good) in [
            ("", true),
            ("git.example.com", true),
            ("*.team.svc, 10.0.0.0/8,fd00::/8, 192.168.1.5", true),
            ("0.0.0.0/0", true),
            ("*", false),
            ("*.", false),
            ("a.*.b", false),
            ("https://a.example", false),
            ("a.example:443", false),
            ("10.0.0.1/8", false),
            ("10.0.0.0/33", false),
            ("fd00::/129", false),
            ("10.0.0", false),
            ("a..b", false),
            ("a b", false),
        ] {
            assert_eq!(Allowed::parse(text).is_some(), is_good, "{text}");
        }
    }

    #[test]
    fn hosts_and_networks_are_found_in_the_list() {
        let list = "git.example.com,*.team.svc,10.20.0.0/16,fd12::/16,192.168.1.5";
        let allowed = Allowed::parse(list).expect("a list");
        for (host, expected) in [
            ("git.example.com", true),
            ("GIT.example.com.", true),
            ("x.git.example.com", false),
            ("a.team.svc", true),
            ("a.b.team.svc", true),
            ("team.svc", false),
            (".team.svc", false),
            ("steam.svc", false),
            ("10.20.0.1", false),
        ] {
            assert_eq!(allowed.has_host(host), expected, "{host}");
        }
        for (address, expected) in [
            ("10.20.255.1", true),
            ("10.21.0.1", false),
            ("192.168.1.5", true),
            ("192.168.1.6", false),
            ("fd12::9", true),
            ("fd13::9", false),
            ("::ffff:10.20.0.1", false),
        ] {
            let ip = address.parse().expect(address);
            assert_eq!(allowed.has_address(ip), expected, "{address}");
        }
    }
}
