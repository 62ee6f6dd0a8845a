// SPDX-License-Identifier: Apache-2.0

package proxy

// This file has the texts of refused connections, which the agent and its commands read. Its tools print them.
const (
	textHost         = "the host is not permitted"
	textHostNext     = "use a permitted host, or add %q to NetworkPolicy.AllowedDomains"
	textPort         = "port %d is not permitted"
	textPortNext     = "use a permitted port, or add %d to NetworkPolicy.AllowedPorts"
	textLocal        = "the machine outside of the cell is not permitted"
	textLocalNext    = "use a permitted host; only the user can set NetworkPolicy.AllowLocalhost"
	textAddress      = "the address is not permitted"
	textKind         = "it is %s"
	textKindNext     = "use a public address; no entry of NetworkPolicy.AllowedDomains permits this one"
	textNameKind     = "the name leads to %s"
	textNameKindNext = "names may lead to public addresses only; a private address has to be listed in NetworkPolicy.AllowedDomains and used itself"

	textCommand     = "the proxy opens connections only; it does not listen (BIND) and does not pass UDP"
	textCommandNext = "connect by TCP instead; no field of NetworkPolicy permits this"

	textConnectBody = "a CONNECT request must have no body"
	textNoHost      = `this is a proxy; send "GET http://host/path" or CONNECT`
	textScheme      = "the proxy forwards only http; use CONNECT for other protocols"
	textHostForm    = "write the host as a plain name, without user and escapes"
	textPortForm    = "the port must be a number from 1 to 65535"

	textNotFound  = "there is no host of this name"
	textTimeout   = "the host did not answer in time"
	textLookup    = "the name could not be resolved"
	textRefused   = "the host refused the connection"
	textNoNetwork = "the network of the host is unreachable"
	textNoAnswer  = "the host gave no answer that can be passed on"
)
