//! Which addresses may be called. Pure: who resolves a name and connects is elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::allowed::Allowed;
use crate::closed_labels;

closed_labels! {
    /// Why a call was refused.
    pub enum Refusal {
        /// The text is not an address that can be called: http or https, with a host, without a user.
        Url = "url",
        /// It leads back into our own pod.
        Loopback = "loopback",
        /// It leads to the neighbours on the wire, or to what hands out the credentials of a cloud machine.
        LinkLocal = "link_local",
        /// It names no machine.
        Unspecified = "unspecified",
        /// It names many machines.
        Multicast = "multicast",
        /// It leads to the API server.
        ApiServer = "api_server",
        /// It leads into a private network that the operator has not listed.
        Private = "private",
        /// It lies in a range that is kept for special purposes and that the operator has not listed.
        Reserved = "reserved",
        /// It is public, and the operator wants only what is listed.
        NotListed = "not_listed",
        /// The answer sends the caller to another host or scheme, or round in circles.
        Redirect = "redirect",
        /// A credential would go to a host that it is not for, or in the clear.
        Credential = "credential",
    }
}

impl Refusal {
    /// A sentence for people; it names no address, since what a name leads to is not for everyone to see.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Url => {
                "it is not an address that can be called; write http or https, a host, and no user"
            }
            Self::Loopback => "it leads to the controller itself",
            Self::LinkLocal => "it leads to a link-local address",
            Self::Unspecified => "it leads to no machine",
            Self::Multicast => "it leads to a multicast address",
            Self::ApiServer => "it leads to the API server",
            Self::Private => {
                "it leads into a private network that the operator has not allowed (AGENTS_EGRESS_ALLOWED)"
            }
            Self::Reserved => {
                "it leads to a reserved address that the operator has not allowed (AGENTS_EGRESS_ALLOWED)"
            }
            Self::NotListed => "the operator has not allowed this host (AGENTS_EGRESS_ALLOWED)",
            Self::Redirect => "it sends the caller elsewhere",
            Self::Credential => {
                "a credential goes only to the host that it is for, and only over TLS"
            }
        }
    }
}

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Realm {
    Public,
    Private,
    Reserved,
    Loopback,
    LinkLocal,
    Unspecified,
    Multicast,
}

/// Services of clouds that hand out credentials and lie outside the link-local range.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// What the operator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) allowed: Allowed,
    /// Whether public addresses need not be listed.
    pub(super) public: bool,
    /// Whether our own machine may be called; for tests.
    pub(super) loopback: bool,
    /// Hosts and ports that the operator names as the database of the installation.
    pub(super) database: Vec<(String, u16)>,
}

impl Rules {
    /// Whether an address may be called that a host was resolved to.
    pub(super) fn judge(
        &self,
        host: &str,
        address: SocketAddr,
        api_server: &[SocketAddr],
    ) -> Result<(), Refusal> {
        let ip = plain(address.ip());
        if api_server
            .iter()
            .any(|api| is_same(*api, SocketAddr::new(ip, address.port())))
        {
            return Err(Refusal::ApiServer);
        }
        let is_listed = self.allowed.has_host(host) || self.allowed.has_address(ip);
        let place = |own: &(String, u16)| own.0 == host && own.1 == address.port();
        let is_listed = is_listed || self.database.iter().any(place);
        match realm(ip) {
            Realm::Loopback if self.loopback => Ok(()),
            Realm::Loopback => Err(Refusal::Loopback),
            Realm::LinkLocal => Err(Refusal::LinkLocal),
            Realm::Unspecified => Err(Refusal::Unspecified),
            Realm::Multicast => Err(Refusal::Multicast),
            Realm::Public if self.public || is_listed => Ok(()),
            Realm::Public => Err(Refusal::NotListed),
            Realm::Private | Realm::Reserved if is_listed => Ok(()),
            Realm::Private => Err(Refusal::Private),
            Realm::Reserved => Err(Refusal::Reserved),
        }
    }
}

/// Whether both are one machine. On our own machine, which only tests call, the port tells servers apart.
fn is_same(api: SocketAddr, other: SocketAddr) -> bool {
    let ip = plain(api.ip());
    ip == other.ip() && (realm(ip) != Realm::Loopback || api.port() == other.port())
}

/// The address that is meant: IPv4 that is written as IPv6 is IPv4.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(six) => embedded(six).map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    }
}

/// IPv4 inside IPv6: mapped, the old compatible form, translated (NAT64), and 6to4.
fn embedded(six: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, .., y, z] = six.segments();
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    let middle = &six.segments()[2..6];
    match (a, b) {
        (0, 0) if middle == [0, 0, 0, 0xffff] => Some(four(y, z)),
        (0, 0) if middle == [0; 4] && (y, z) != (0, 0) && (y, z) != (0, 1) => Some(four(y, z)),
        (0x64, 0xff9b) if middle == [0; 4] => Some(four(y, z)),
        (0x2002, _) => Some(four(b, c)),
        _ => None,
    }
}

/// Where an address lies; IPv4 inside IPv6 lies where the IPv4 address lies.
pub(super) fn realm(ip: IpAddr) -> Realm {
    let ip = plain(ip);
    if METADATA.contains(&ip) {
        return Realm::LinkLocal;
    }
    match ip {
        IpAddr::V4(four) => realm_of_four(four),
        IpAddr::V6(six) => realm_of_six(six),
    }
}

fn realm_of_four(four: Ipv4Addr) -> Realm {
    match four.octets() {
        [0, ..] => Realm::Unspecified,
        [127, ..] => Realm::Loopback,
        [169, 254, ..] => Realm::LinkLocal,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Realm::Private,
        [224..=239, ..] => Realm::Multicast,
        [240..=255, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Realm::Reserved,
        _ => Realm::Public,
    }
}

fn realm_of_six(six: Ipv6Addr) -> Realm {
    let [a, b, ..] = six.segments();
    if six.is_unspecified() {
        Realm::Unspecified
    } else if six.is_loopback() {
        Realm::Loopback
    } else if six.is_multicast() {
        Realm::Multicast
    } else if a & 0xffc0 == 0xfe80 {
        Realm::LinkLocal
    } else if a & 0xfe00 == 0xfc00 || a & 0xffc0 == 0xfec0 {
        Realm::Private
    } else if a & 0xe000 != 0x2000 || (a, b) == (0x2001, 0xdb8) || (a == 0x2001 && b < 0x200) {
        // Only 2000::/3 is given out; within it are examples, tunnels and other special ranges.
        Realm::Reserved
    } else {
        Realm::Public
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kit::config::Value;

    #[test]
    fn every_range_has_its_realm() {
        for (address, expected) in [
            ("1.1.1.1", Realm::Public),
            ("140.82.121.6", Realm::Public),
            ("172.15.255.255", Realm::Public),
            ("172.32.0.0", Realm::Public),
            ("100.63.255.255", Realm::Public),
            ("100.128.0.0", Realm::Public),
            ("2606:4700::1111", Realm::Public),
            ("2001:4860:4860::8888", Realm::Public),
            ("10.0.0.1", Realm::Private),
            ("172.16.0.1", Realm::Private),
            ("172.31.255.255", Realm::Private),
            ("192.168.1.1", Realm::Private),
            ("100.64.0.1", Realm::Private),
            ("100.127.255.255", Realm::Private),
            ("fc00::1", Realm::Private),
            ("fdff::1", Realm::Private),
            ("fec0::1", Realm::Private),
            ("127.0.0.1", Realm::Loopback),
            ("127.255.0.1", Realm::Loopback),
            ("::1", Realm::Loopback),
            ("169.254.169.254", Realm::LinkLocal),
            ("169.254.0.1", Realm::LinkLocal),
            ("fe80::1", Realm::LinkLocal),
            ("febf::1", Realm::LinkLocal),
            ("100.100.100.200", Realm::LinkLocal),
            ("192.0.0.192", Realm::LinkLocal),
            ("fd00:ec2::254", Realm::LinkLocal),
            ("0.0.0.0", Realm::Unspecified),
            ("0.1.2.3", Realm::Unspecified),
            ("::", Realm::Unspecified),
            ("224.0.0.1", Realm::Multicast),
            ("239.255.255.255", Realm::Multicast),
            ("ff02::1", Realm::Multicast),
            ("255.255.255.255", Realm::Reserved),
            ("240.0.0.1", Realm::Reserved),
            ("192.0.2.1", Realm::Reserved),
            ("198.18.0.1", Realm::Reserved),
            ("198.51.100.1", Realm::Reserved),
            ("203.0.113.9", Realm::Reserved),
            ("2001:db8::1", Realm::Reserved),
            ("2001::1", Realm::Reserved),
            ("100::1", Realm::Reserved),
            ("4000::1", Realm::Reserved),
            ("::ffff:127.0.0.1", Realm::Loopback),
            ("::ffff:7f00:1", Realm::Loopback),
            ("::127.0.0.1", Realm::Loopback),
            ("::ffff:169.254.169.254", Realm::LinkLocal),
            ("::ffff:0.0.0.0", Realm::Unspecified),
            ("::ffff:10.1.2.3", Realm::Private),
            ("::ffff:224.0.0.1", Realm::Multicast),
            ("::ffff:8.8.8.8", Realm::Public),
            ("64:ff9b::7f00:1", Realm::Loopback),
            ("64:ff9b::a9fe:a9fe", Realm::LinkLocal),
            ("64:ff9b:1::1", Realm::Reserved),
            ("2002:7f00:1::", Realm::Loopback),
            ("2002:a00:1::", Realm::Private),
        ] {
            let ip: IpAddr = address.parse().expect(address);
            assert_eq!(realm(ip), expected, "{address}");
        }
    }

    fn rules(allowed: &str) -> Rules {
        Rules {
            allowed: Allowed::parse(allowed).expect(allowed),
            public: true,
            loopback: false,
            database: Vec::new(),
        }
    }

    #[test]
    fn what_may_be_called_follows_from_realm_and_list() {
        let api = ["20.0.0.1:443".parse().expect("an address")];
        for (row, allowed, host, address, expected) in [
            ("public", "", "a.example", "1.1.1.1:443", Ok(())),
            (
                "private",
                "",
                "a.example",
                "10.0.0.1:443",
                Err(Refusal::Private),
            ),
            ("listed range", "10.0.0.0/8", "a", "10.9.0.1:80", Ok(())),
            (
                "beside the range",
                "10.0.0.0/16",
                "a",
                "10.9.0.1:80",
                Err(Refusal::Private),
            ),
            ("listed host", "*.svc", "x.team.svc", "10.9.0.1:80", Ok(())),
            (
                "no host of the list",
                "*.svc",
                "svc",
                "10.9.0.1:80",
                Err(Refusal::Private),
            ),
            (
                "mapped, in a listed range",
                "10.0.0.0/8",
                "a",
                "[::ffff:10.0.0.1]:80",
                Ok(()),
            ),
            ("reserved", "", "a", "198.18.0.1:80", Err(Refusal::Reserved)),
            (
                "listed reserved",
                "198.18.0.0/15",
                "a",
                "198.18.0.1:80",
                Ok(()),
            ),
            (
                "no list opens loopback",
                "127.0.0.0/8,localhost",
                "localhost",
                "127.0.0.1:80",
                Err(Refusal::Loopback),
            ),
            (
                "nor link-local",
                "169.254.0.0/16",
                "a",
                "169.254.169.254:80",
                Err(Refusal::LinkLocal),
            ),
            (
                "nor the API server, on any port",
                "20.0.0.0/8",
                "a",
                "20.0.0.1:2379",
                Err(Refusal::ApiServer),
            ),
            (
                "nor its mapped form",
                "20.0.0.0/8",
                "a",
                "[::ffff:20.0.0.1]:443",
                Err(Refusal::ApiServer),
            ),
        ] {
            let address = address.parse().expect(address);
            assert_eq!(rules(allowed).judge(host, address, &api), expected, "{row}");
        }
    }

    #[test]
    fn only_what_is_listed_if_the_operator_wants_it_so() {
        let rules = Rules {
            public: false,
            ..rules("api.example,9.9.9.0/24")
        };
        for (host, address, expected) in [
            ("api.example", "1.1.1.1:443", Ok(())),
            ("other.example", "9.9.9.9:443", Ok(())),
            ("other.example", "1.1.1.1:443", Err(Refusal::NotListed)),
        ] {
            let address = address.parse().expect(address);
            assert_eq!(rules.judge(host, address, &[]), expected, "{host}");
        }
    }

    #[test]
    fn in_tests_our_own_machine_may_be_called_but_not_its_api_server() {
        let rules = Rules {
            loopback: true,
            ..rules("")
        };
        let api = ["127.0.0.1:6443".parse().expect("an address")];
        for (address, expected) in [
            ("127.0.0.1:8080", Ok(())),
            ("[::1]:6443", Ok(())),
            ("127.0.0.1:6443", Err(Refusal::ApiServer)),
            ("[::ffff:127.0.0.1]:6443", Err(Refusal::ApiServer)),
            ("169.254.169.254:80", Err(Refusal::LinkLocal)),
        ] {
            let address = address.parse().expect(address);
            assert_eq!(rules.judge("a", address, &api), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn ipv4_lies_where_it_lies_however_it_is_written(bits in any::<u32>()) {
            let four = Ipv4Addr::from(bits);
            let expected = realm(IpAddr::V4(four));
            prop_assert_eq!(realm(IpAddr::V6(four.to_ipv6_mapped())), expected);
            let [a, b, c, d] = four.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            let translated = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low);
            prop_assert_eq!(realm(IpAddr::V6(translated)), expected);
            let tunnel = Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1);
            prop_assert_eq!(realm(IpAddr::V6(tunnel)), expected);
        }
    }
}
