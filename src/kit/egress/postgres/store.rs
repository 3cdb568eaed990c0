//! Where a PostgreSQL is and who signs in, from a connection string. Pure.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::kit::config::Value;

/// Longest connection string that is looked at, and most hosts in it.
const LONGEST: usize = 4096;
const HOSTS: usize = 4;
/// Where servers listen if nobody says otherwise.
const PORT: u16 = 5432;

/// A PostgreSQL and who signs in there. What is in it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Store {
    /// Hosts and ports, in the order in which they are tried.
    pub(in crate::kit::egress) places: Vec<(String, u16)>,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) database: String,
    pub(super) tls: Tls,
}

/// Whether the connection is encrypted. Where it is, the server is always known by its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    Never,
    IfOffered,
    Always,
}

impl Store {
    /// Reads a connection string such as `postgres://user:password@host:5432/name?sslmode=require`. Parameters that say
    /// nothing about the connection are passed over, since programs bring their own.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words that show nothing of it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err("it is longer than 4096 characters");
        }
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        // Some programs name their driver: postgresql+asyncpg.
        let scheme = scheme.split('+').next().unwrap_or_default();
        if !matches!(scheme, "postgres" | "postgresql") {
            return Err(FORM);
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, name) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = who.split_once(':').unwrap_or((who, ""));
        let mut store = Self {
            places: Vec::new(),
            user: decoded(user)?,
            password: decoded(password)?,
            database: decoded(name)?,
            tls: Tls::IfOffered,
        };
        let mut hosts = decoded(hosts)?;
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            match key {
                "user" => store.user = value,
                "password" => store.password = value,
                "dbname" => store.database = value,
                "host" => hosts = value,
                "sslmode" => store.tls = mode(&value)?,
                "ssl" if value == "true" => store.tls = Tls::Always,
                _ => {}
            }
        }
        store.places = places(&hosts)?;
        store.complete()
    }

    fn complete(mut self) -> Result<Self, &'static str> {
        if self.user.is_empty() {
            return Err("it names no user");
        }
        if self.database.is_empty() {
            self.database.clone_from(&self.user);
        }
        let texts = [&self.user, &self.password, &self.database];
        match texts.iter().any(|text| text.contains('\0')) {
            true => Err("it holds a character that no name or password has"),
            false => Ok(self),
        }
    }

    /// Whether both are on the same server.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.places.iter().any(|place| other.places.contains(place))
    }
}

const FORM: &str =
    "write an address that begins with postgres:// and names user, host and database";

fn decoded(text: &str) -> Result<String, &'static str> {
    let text = percent_decode_str(text).decode_utf8();
    let text = text.map_err(|_| "it is not UTF-8 once decoded")?;
    Ok(text.into_owned())
}

fn mode(word: &str) -> Result<Tls, &'static str> {
    match word {
        "disable" => Ok(Tls::Never),
        "allow" | "prefer" => Ok(Tls::IfOffered),
        "require" | "verify-ca" | "verify-full" => Ok(Tls::Always),
        _ => Err("its sslmode is none that there is"),
    }
}

fn places(hosts: &str) -> Result<Vec<(String, u16)>, &'static str> {
    let places = hosts.split(',').map(place).collect::<Result<Vec<_>, _>>()?;
    match places.len() <= HOSTS {
        true => Ok(places),
        false => Err("it names more than 4 hosts"),
    }
}

fn place(text: &str) -> Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("a host in it has no end")?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port.filter(|port| !port.is_empty()) {
        Some(port) => port.parse().map_err(|_| "a port in it is no number")?,
        None => PORT,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() {
        return Err("it names no host");
    }
    if host.contains('/') {
        return Err("it names a file in place of a host");
    }
    Ok((host, port))
}

impl Value for Store {
    const EXPECTED: &'static str =
        "a connection string such as postgres://user:password@host:5432/name";

    fn parse(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store(not shown)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything but the password, or what is wrong.
    fn words(text: &str) -> String {
        match Store::parse(text) {
            Ok(store) => {
                let Store {
                    places,
                    user,
                    password: _,
                    database,
                    tls,
                } = store;
                let places: Vec<_> = places
                    .iter()
                    .map(|(host, port)| format!("{host} {port}"))
                    .collect();
                format!("{user} at {} in {database}, {tls:?}", places.join(", "))
            }
            Err(why) => why.to_owned(),
        }
    }

    #[test]
    fn a_connection_string_is_taken_apart_or_refused() {
        for (text, expected) in [
            ("postgres://u:p@h/d", "u at h 5432 in d, IfOffered"),
            (
                "postgresql://u@H.Example.:5433",
                "u at h.example 5433 in u, IfOffered",
            ),
            (
                "postgresql+asyncpg://u@h/d?sslmode=require",
                "u at h 5432 in d, Always",
            ),
            (
                "postgres://u@h/d?sslmode=verify-full&application_name=x",
                "u at h 5432 in d, Always",
            ),
            (
                "postgres://u@h/d?sslmode=disable&pool_timeout=3",
                "u at h 5432 in d, Never",
            ),
            ("postgres://u@h/d?ssl=true", "u at h 5432 in d, Always"),
            (
                "postgres://a%40b:p%2F@h/d%20e",
                "a@b at h 5432 in d e, IfOffered",
            ),
            (
                "postgres://u@[::1]:5433,b:5434/d",
                "u at ::1 5433, b 5434 in d, IfOffered",
            ),
            (
                "postgres:///d?host=h&user=u&password=p",
                "u at h 5432 in d, IfOffered",
            ),
            ("  postgres://u@h  ", "u at h 5432 in u, IfOffered"),
            ("mysql://u@h/d", FORM),
            ("host=h user=u", FORM),
            ("", FORM),
            ("postgres://h/d", "it names no user"),
            ("postgres://u@/d", "it names no host"),
            (
                "postgres://u@%2Fvar%2Frun/d",
                "it names a file in place of a host",
            ),
            ("postgres://u@h:x/d", "a port in it is no number"),
            ("postgres://u@a,b,c,d,e/x", "it names more than 4 hosts"),
            (
                "postgres://u@h/d?sslmode=maybe",
                "its sslmode is none that there is",
            ),
            ("postgres://u:%FF@h/d", "it is not UTF-8 once decoded"),
            (
                "postgres://u:%00@h/d",
                "it holds a character that no name or password has",
            ),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        let long = format!("postgres://u@h/{}", "x".repeat(LONGEST));
        assert_eq!(words(&long), "it is longer than 4096 characters");
    }

    #[test]
    fn nothing_of_it_is_shown() {
        let store = Store::parse("postgres://some:secret@where.example/what").unwrap();
        assert_eq!(format!("{store:?}"), "Store(not shown)");
        assert_eq!(store.password, "secret");
    }

    #[test]
    fn two_are_on_one_server_by_host_and_port() {
        let own = Store::parse("postgres://a@h,i:1/x").unwrap();
        for (other, expected) in [
            ("postgres://b:c@H:5432/y", true),
            ("postgres://b@i:1", true),
            ("postgres://b@i", false),
            ("postgres://b@j", false),
        ] {
            let other = Store::parse(other).unwrap();
            assert_eq!(own.is_beside(&other), expected, "{other:?}");
        }
    }
}
