// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/gateway/bedrock"
)

func TestMain(m *testing.M) { claudetest.Main(m) }

// The planted key. The fakes accept it and nothing else.
const (
	plantedID     = "AKIAPLANTEDPLANTED00"
	plantedSecret = "planted/secret+access/key"
	region        = "eu-west-7"
)

// A fakeBedrock is Bedrock on loopback: it checks the signature of each request as Amazon does.
type fakeBedrock struct {
	*httptest.Server
	secrets map[string]string // by access key id
	answer  http.HandlerFunc

	mu   sync.Mutex
	seen []*http.Request
}

func newFakeBedrock(t testing.TB, answer http.HandlerFunc) *fakeBedrock {
	t.Helper()
	f := &fakeBedrock{secrets: map[string]string{plantedID: plantedSecret}, answer: answer}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeBedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	f.mu.Lock()
	f.seen = append(f.seen, r)
	f.mu.Unlock()
	if err := f.check(r, body); err != nil {
		w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
		http.Error(w, `{"message":"`+err.Error()+`"}`, http.StatusForbidden)
		return
	}
	f.answer(w, r)
}

func (f *fakeBedrock) requests() []*http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// check signs the request again with the secret of the key that it names.
func (f *fakeBedrock) check(r *http.Request, body []byte) error {
	got := r.Header.Get("Authorization")
	if got == "Bearer planted-bearer" {
		return nil
	}
	id, scope, _ := strings.Cut(between(got, "Credential=", ","), "/")
	parts := strings.Split(scope, "/")
	if len(parts) != 4 || parts[2] != "bedrock" || parts[3] != "aws4_request" {
		return fmt.Errorf("scope %s", scope)
	}
	if parts[1] != region {
		return fmt.Errorf("region %s", parts[1])
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(between(got, "SignedHeaders=", ","), ";") {
		if values := r.Header.Values(name); len(values) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	hash := sha256.Sum256(body)
	creds := aws.Credentials{AccessKeyID: id, SecretAccessKey: f.secrets[id], SessionToken: r.Header.Get("X-Amz-Security-Token")}
	if err := v4.NewSigner().SignHTTP(r.Context(), creds, again, hex.EncodeToString(hash[:]), "bedrock", region, at); err != nil {
		return err
	}
	if want := again.Header.Get("Authorization"); got != want {
		return fmt.Errorf("the signature is not that of %s", id)
	}
	return nil
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// environment is a whole environment; what it does not name is not there.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// planted is the environment that has the planted key. No test asks for an instance profile.
func planted() environment {
	return environment{
		"AWS_ACCESS_KEY_ID": plantedID, "AWS_SECRET_ACCESS_KEY": plantedSecret, "AWS_REGION": region,
		"AWS_EC2_METADATA_DISABLED": "true",
	}
}

// decoys puts credentials into the environment of the process that no test may use, and keeps the
// SDK from the real home.
func decoys(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "decoy")
	writeFile(t, config, "[default]\nregion = decoy-1\naws_access_key_id = AKIADECOYDECOYDECOY0\naws_secret_access_key = decoy\n")
	defaultConfig, defaultCredentials := awsconfig.DefaultSharedConfigFiles, awsconfig.DefaultSharedCredentialsFiles
	awsconfig.DefaultSharedConfigFiles, awsconfig.DefaultSharedCredentialsFiles = []string{config}, []string{config}
	t.Cleanup(func() {
		awsconfig.DefaultSharedConfigFiles, awsconfig.DefaultSharedCredentialsFiles = defaultConfig, defaultCredentials
	})
	for name, value := range map[string]string{
		"HOME": dir, "USERPROFILE": dir, "AWS_CONFIG_FILE": config, "AWS_SHARED_CREDENTIALS_FILE": config,
		"AWS_ACCESS_KEY_ID": "AKIADECOYDECOYDECOY1", "AWS_SECRET_ACCESS_KEY": "decoy", "AWS_SESSION_TOKEN": "decoy",
		"AWS_REGION": "decoy-2", "AWS_DEFAULT_REGION": "decoy-3", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "AWS_BEARER_TOKEN_BEDROCK": "decoy", "AWS_WEB_IDENTITY_TOKEN_FILE": "", "AWS_ROLE_ARN": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
		"AWS_CA_BUNDLE": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_STS": "", "AWS_ENDPOINT_URL_SSO": "",
	} {
		t.Setenv(name, value)
	}
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// open makes an upstream that closes its connections with the test.
func open(t testing.TB, opts bedrock.Options) *bedrock.Upstream {
	t.Helper()
	u, err := bedrock.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.CloseIdleConnections)
	return u
}

// invoke calls a model and returns status and body.
func invoke(t testing.TB, u *bedrock.Upstream) (int, string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream", strings.NewReader(`{"max_tokens":1}`))
	return do(t, u, req)
}

func do(t testing.TB, u *bedrock.Upstream, req *http.Request) (int, string) {
	t.Helper()
	resp, err := u.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func answerOK(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }
