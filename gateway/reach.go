// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
)

func unreachable(err error) string {
	var (
		dns  *net.DNSError
		op   *net.OpError
		cert *tls.CertificateVerificationError
		head tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("the host %s is not known (DNS: no such host)", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %s cannot be looked up (DNS: %s)", dns.Name, dns.Err)
	case errors.As(err, &cert):
		return fmt.Sprintf("its certificate is not accepted (TLS: %v)", cert.Err)
	case errors.As(err, &head):
		return "it does not speak TLS, although the address is https"
	case errors.As(err, &op) && op.Addr != nil && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refused the connection", op.Addr)
	case errors.As(err, &op) && op.Addr != nil && errors.Is(err, syscall.ECONNRESET):
		return fmt.Sprintf("%s broke off the connection", op.Addr)
	case errors.As(err, &op) && op.Addr != nil && op.Timeout():
		return fmt.Sprintf("%s did not answer in time", op.Addr)
	}
	return firstLine(err)
}

// unsent reports whether an upstream cannot have got the request.
func unsent(err error) bool {
	var (
		dns  *net.DNSError
		op   *net.OpError
		cert *tls.CertificateVerificationError
		head tls.RecordHeaderError
		ours *unsentError
	)
	return errors.As(err, &dns) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		errors.As(err, &cert) || errors.As(err, &head) || errors.As(err, &ours)
}

type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }
