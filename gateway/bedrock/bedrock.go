// SPDX-License-Identifier: Apache-2.0

package bedrock

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/internal/echo"
)

func init() {
	gateway.RegisterUpstream("bedrock", func(ctx context.Context, cfg gateway.UpstreamConfig) (gateway.Upstream, error) {
		return New(ctx, Options{Region: cfg.Region, Profile: cfg.Profile, ConfigDir: cfg.ConfigDir, Lookup: cfg.Lookup, BaseURL: cfg.BaseURL})
	})
}

// Options configures [New]. The zero value uses what the AWS tools would use.
type Options struct {
	// Region is the AWS region. Empty means AWS_REGION, AWS_DEFAULT_REGION, or that of the profile.
	Region string
	// Profile is the profile to use; it overrides the environment. Empty means the usual order.
	Profile string
	// ConfigDir has the files config and credentials, and the folder sso/cache. Empty means
	// AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE, or else .aws in the folder that HOME names.
	ConfigDir string
	// Lookup looks up a variable of the environment. Nil means os.LookupEnv.
	Lookup func(string) (string, bool)
	// BaseURL replaces Amazon's hosts.
	BaseURL string
	// HTTPClient makes the requests; its redirects are not followed. Requests for credentials use the proxy and
	// certificates of its transport. Nil means a client of its own, which trusts what AWS_CA_BUNDLE names.
	HTTPClient *http.Client
}

// An Upstream signs requests and sends them to Bedrock. It is a [gateway.Upstream].
type Upstream struct {
	opts      Options
	region    string
	bearer    string // instead of a signature
	base      *url.URL
	transport http.RoundTripper
	signer    *v4.Signer

	mu          sync.Mutex
	credentials aws.CredentialsProvider
}

// New finds region and credentials. Without either it fails with an error that has the fix.
func New(ctx context.Context, opts Options) (*Upstream, error) {
	if opts.Lookup == nil {
		opts.Lookup = os.LookupEnv
	}
	u := &Upstream{opts: opts, signer: v4.NewSigner(), bearer: opts.env("AWS_BEARER_TOKEN_BEDROCK")}
	if err := u.connect(); err != nil {
		return nil, err
	}
	profile, err := opts.loadProfile(ctx)
	if err != nil {
		return nil, err
	}
	u.region = cmp.Or(opts.Region, opts.env("AWS_REGION"), opts.env("AWS_DEFAULT_REGION"), profile.Region)
	switch {
	case u.region == "":
		return nil, advice.Wrap(errors.New("bedrock: no AWS region"), "set AWS_REGION to the region that offers your models, such as us-east-1")
	case !regionName.MatchString(u.region):
		return nil, advice.Wrap(fmt.Errorf("bedrock: %q is no AWS region", u.region), "set AWS_REGION to one, such as us-east-1")
	case u.bearer != "":
		return u, nil
	}
	return u, u.renew(ctx)
}

// Region is the region whose models are called.
func (u *Upstream) Region() string { return u.region }

var regionName = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+)+$`)

func (u *Upstream) connect() error {
	if u.opts.HTTPClient == nil {
		transport, err := u.opts.newTransport()
		if err != nil {
			return err
		}
		u.opts.HTTPClient = &http.Client{Transport: transport}
	}
	u.transport = u.opts.HTTPClient.Transport
	if u.transport == nil {
		u.transport = http.DefaultTransport
	}
	if u.opts.BaseURL == "" {
		return nil
	}
	base, err := url.Parse(u.opts.BaseURL)
	if err != nil || base.Host == "" {
		return advice.Wrap(fmt.Errorf("bedrock: BaseURL %q is no address", u.opts.BaseURL), "give one like https://host")
	}
	u.base = base
	return nil
}

func (o Options) newTransport() (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true
	bundle := o.env("AWS_CA_BUNDLE")
	if bundle == "" {
		return transport, nil
	}
	certificates, err := os.ReadFile(bundle)
	pool := x509.NewCertPool()
	if err == nil && !pool.AppendCertsFromPEM(certificates) {
		err = errors.New(bundle + " has no certificate")
	}
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("bedrock: reading AWS_CA_BUNDLE: %w", err), "correct or unset it")
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	return transport, nil
}

// Name has the region.
func (u *Upstream) Name() string { return "bedrock " + u.region }

// Wire is the Bedrock wire.
func (u *Upstream) Wire() *gateway.Wire { return gateway.WireBedrock }

// CloseIdleConnections closes connections that no request uses.
func (u *Upstream) CloseIdleConnections() { u.opts.HTTPClient.CloseIdleConnections() }

// RoundTrip signs a request and sends it.
func (u *Upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	service, ok := serviceOf(req)
	if !ok {
		return refuse(req), nil
	}
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	resp, err := u.send(req, service, body)
	if err != nil || u.bearer != "" || !expired(resp) {
		return resp, err
	}
	if u.renew(req.Context()) != nil {
		return resp, nil // the answer of Bedrock is the better explanation
	}
	_ = resp.Body.Close()
	return u.send(req, service, body)
}

func expired(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("X-Amzn-Errortype"), ":")
	return resp.StatusCode == http.StatusForbidden && kind == "ExpiredTokenException"
}

func (u *Upstream) send(req *http.Request, service string, body []byte) (*http.Response, error) {
	out, err := u.outgoing(req, service, body)
	if err != nil {
		return nil, err
	}
	if err := u.authorize(out, body); err != nil {
		return nil, err
	}
	resp, err := u.transport.RoundTrip(out)
	if err != nil {
		return nil, echo.Error(err, out.Header)
	}
	echo.Mask(resp, out.Header)
	return resp, nil
}

// outgoing is the request as Bedrock gets it. Of the agent's headers it has those that Bedrock reads.
func (u *Upstream) outgoing(req *http.Request, service string, body []byte) (*http.Request, error) {
	address := u.address(service) + req.URL.EscapedPath()
	if req.URL.RawQuery != "" {
		address += "?" + req.URL.RawQuery
	}
	out, err := http.NewRequestWithContext(req.Context(), req.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("bedrock: %w", err)
	}
	for name, values := range req.Header {
		if strings.HasPrefix(name, "X-Amzn-Bedrock-") || name == "Accept" || name == "Content-Type" || name == "User-Agent" {
			out.Header[name] = values
		}
	}
	return out, nil
}

func (u *Upstream) address(service string) string {
	if u.base != nil {
		return strings.TrimSuffix(u.base.String(), "/")
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(u.region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return "https://" + service + "." + u.region + "." + domain
}

func (u *Upstream) authorize(out *http.Request, body []byte) error {
	if u.bearer != "" {
		out.Header.Set("Authorization", "Bearer "+u.bearer)
		return nil
	}
	u.mu.Lock()
	provider := u.credentials
	u.mu.Unlock()
	creds, err := provider.Retrieve(out.Context())
	if err != nil {
		return u.opts.explain(err)
	}
	hash := sha256.Sum256(body)
	if err := u.signer.SignHTTP(out.Context(), creds, out, hex.EncodeToString(hash[:]), "bedrock", u.region, time.Now()); err != nil {
		return fmt.Errorf("bedrock: signing: %w", err)
	}
	return nil
}

var (
	modelCall = regexp.MustCompile(`^/model/[^/]+/(invoke|invoke-with-response-stream|count-tokens)$`)
	modelList = regexp.MustCompile(`^/(inference-profiles|foundation-models)(/[^/]+)?$`)
)

// serviceOf is the host that answers a request, if it is one that an agent may make.
func serviceOf(req *http.Request) (string, bool) {
	path := req.URL.EscapedPath()
	switch {
	case strings.Contains(path, "/../") || strings.HasSuffix(path, "/.."):
		return "", false
	case req.Method == http.MethodPost && modelCall.MatchString(path):
		return "bedrock-runtime", true
	case req.Method == http.MethodGet && modelList.MatchString(path):
		return "bedrock", true
	}
	return "", false
}

func refuse(req *http.Request) *http.Response {
	body, _ := json.Marshal(map[string]string{"message": fmt.Sprintf("%s %s is not a model call", req.Method, req.URL.Path)})
	return &http.Response{
		Status: "403 Forbidden", StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Amzn-Errortype": {"AccessDeniedException"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}
}

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	return body, errors.Join(err, req.Body.Close())
}
