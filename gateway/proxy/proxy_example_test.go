// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway/proxy"
)

// A tool that asks for a host that is not listed reads why, and the program is notified.
func ExampleProxy() {
	p, err := proxy.New(proxy.Policy{Domains: []string{"example.com", "*.example.org"}, Ports: []int{443}}, &proxy.Options{
		Emit: func(e event.Payload) {
			c := e.(proxy.Connection)
			fmt.Println("reported:", c.Protocol, c.Host, c.Port, c.Verdict)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go p.Serve(l)

	address := &url.URL{Scheme: "http", Host: l.Addr().String()}
	tool := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(address), DisableKeepAlives: true}}
	answer, err := tool.Get("http://elsewhere.net:443/")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	fmt.Print(answer.Status, "\n", string(body))
	p.Close()
	// Unordered output:
	// 403 Forbidden
	// elsewhere.net:443 is denied: the host is not permitted
	//   next: use a permitted host, or add "elsewhere.net" to NetworkPolicy.AllowedDomains
	// reported: http elsewhere.net 443 denied
}

// Patterns that cannot be enforced are refused, with what to write instead.
func ExamplePolicy_Validate() {
	p := proxy.Policy{Domains: []string{"https://example.org/", "example.org", "localhost"}, Ports: []int{70000}}
	fmt.Println(advice.Text(p.Validate()))
	// Output:
	// proxy: Domains[0] "https://example.org/": it is a URL
	//   next: write "example.org"
	// proxy: Domains[2] "localhost": it is this machine
	//   next: leave it out and set Localhost (NetworkPolicy.AllowLocalhost)
	// proxy: Ports[0] 70000: there is no such port
	//   next: write a number from 1 to 65535
}
