//! Where a call goes.

use std::fmt;

use http::Uri;

use super::address::Refusal;

/// Longest address that is looked at.
const LONGEST: usize = 2048;

/// Where a call goes: scheme, host, port and path.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub(super) is_tls: bool,
    /// Lower case, without brackets, without a dot at its end.
    pub(super) host: String,
    pub(super) port: u16,
    /// With the query; begins with a slash.
    pub(super) path: String,
}

impl Target {
    /// Reads an address. One with a user is refused: whoever may read the object could read a password in it.
    ///
    /// # Errors
    ///
    /// When it cannot be called.
    pub fn parse(url: &str) -> Result<Self, Refusal> {
        let uri: Uri = match url.trim() {
            url if url.len() <= LONGEST => url.parse().map_err(|_| Refusal::Url)?,
            _ => return Err(Refusal::Url),
        };
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(Refusal::Url),
        };
        let authority = uri.authority().ok_or(Refusal::Url)?;
        let host = authority.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(Refusal::Url);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        };
        Ok(Self {
            is_tls,
            host,
            port: authority
                .port_u16()
                .unwrap_or(if is_tls { 443 } else { 80 }),
            path,
        })
    }

    /// Another path, with its query, at the same place.
    pub fn at(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// The path, without what follows it.
    pub fn path(&self) -> &str {
        self.path.split('?').next().unwrap_or("/")
    }

    /// The path with its query, as a request says it.
    pub fn path_and_query(&self) -> &str {
        &self.path
    }

    /// The host alone.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also where the address leaves it out.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is called over TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Whether both are the same server: scheme, host and port.
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.is_tls, &self.host, self.port) == (other.is_tls, &other.host, other.port)
    }

    /// The whole address, with its query.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Where an answer sends the caller, if that is the same server.
    ///
    /// # Errors
    ///
    /// When it is another one, or no address at all.
    pub fn follow(&self, location: &str) -> Result<Self, Refusal> {
        let next = match location.starts_with('/') && !location.starts_with("//") {
            true => {
                let path = location.split('#').next().unwrap_or(location);
                let path: Uri = path.parse().map_err(|_| Refusal::Redirect)?;
                self.at(path.path_and_query().map_or("/", |path| path.as_str()))
            }
            false => Self::parse(location).map_err(|_| Refusal::Redirect)?,
        };
        match next.is_beside(self) {
            true => Ok(next),
            false => Err(Refusal::Redirect),
        }
    }

    /// Host and port as the `Host` header says them.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// For people: without the query, which may hold a secret.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_or_refused() {
        for (url, expected) in [
            ("https://A.Example/x?y=z", Some("https://a.example/x")),
            ("http://a.example:8080", Some("http://a.example:8080/")),
            ("https://a.example.:443/", Some("https://a.example/")),
            ("http://[::1]:8080/x", Some("http://[::1]:8080/x")),
            ("http://10.0.0.1?x=1", Some("http://10.0.0.1/")),
            ("ftp://a.example/", None),
            ("a.example/x", None),
            ("/x", None),
            ("https://user@a.example/", None),
            ("https://user:pw@a.example/", None),
            ("https:///x", None),
            ("", None),
        ] {
            let target = Target::parse(url).ok();
            let shown = target.map(|target| target.to_string());
            assert_eq!(shown.as_deref(), expected, "{url}");
        }
        let long = format!("https://a.example/{}", "x".repeat(LONGEST));
        assert_eq!(Target::parse(&long), Err(Refusal::Url));
    }

    #[test]
    fn an_answer_may_send_the_caller_only_to_the_same_server() {
        let from = Target::parse("https://a.example/x").expect("a target");
        for (location, expected) in [
            ("/y?z=1", Some("/y?z=1")),
            ("https://a.example/y", Some("/y")),
            ("https://A.example:443/y#part", Some("/y")),
            ("http://a.example/y", None),
            ("https://a.example:8443/y", None),
            ("https://b.example/y", None),
            ("//b.example/y", None),
            ("https://a.example@b.example/", None),
            ("y", None),
            ("", None),
        ] {
            let next = from.follow(location).ok().map(|next| next.path);
            assert_eq!(next.as_deref(), expected, "{location}");
        }
    }
}
