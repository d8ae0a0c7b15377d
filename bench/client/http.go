package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// httpTarget speaks HTTP/1.1 with connections that are kept alive: Connect's JSON for commands, plain HTTP for files.
type httpTarget struct {
	client *http.Client
	base   string
	token  string
}

func connectHTTP(address, token string) Target {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, ReadBufferSize: 256 << 10, WriteBufferSize: 256 << 10}
	return &httpTarget{client: &http.Client{Transport: transport}, base: "http://" + address, token: token}
}

func (target *httpTarget) Exec(argv []string) ([]byte, error) {
	body, err := json.Marshal(map[string]any{"argv": argv})
	if err != nil {
		return nil, err
	}
	answer, err := target.do("POST", "/picod.v1.ProcessService/Execute", bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	var response struct {
		Stdout, Stderr string
		ExitCode       int
	}
	if err := json.NewDecoder(answer).Decode(&response); err != nil {
		return nil, err
	}
	if response.ExitCode != 0 {
		return nil, fmt.Errorf("exit code %d: %s", response.ExitCode, response.Stderr)
	}
	// What is left unread would cost the connection.
	_, err = io.Copy(io.Discard, answer)
	return []byte(response.Stdout), err
}

func (target *httpTarget) Stream([]string, func([]byte)) error {
	return errNotOffered
}

func (target *httpTarget) List(string) (int, error) {
	return 0, errNotOffered
}

func (target *httpTarget) Stat(path string) error {
	answer, err := target.do("HEAD", filePath(path), nil, 0)
	if err != nil {
		return err
	}
	return answer.Close()
}

func (target *httpTarget) Download(path, sha256 string) (int64, error) {
	if sha256 != "" {
		return 0, errNotOffered
	}
	answer, err := target.do("GET", filePath(path), nil, 0)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	return io.CopyBuffer(discard{}, answer, make([]byte, 1<<20))
}

func (target *httpTarget) Upload(path string, size int64, sha256 string) error {
	if sha256 != "" {
		return errNotOffered
	}
	return target.put(path, &repeated{remaining: size}, size)
}

func (target *httpTarget) ReadFile(path string) ([]byte, error) {
	answer, err := target.do("GET", filePath(path), nil, 0)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return io.ReadAll(answer)
}

func (target *httpTarget) WriteFile(path string, content []byte) error {
	return target.put(path, bytes.NewReader(content), int64(len(content)))
}

func (target *httpTarget) Close() {
	target.client.CloseIdleConnections()
}

func (target *httpTarget) put(path string, body io.Reader, size int64) error {
	answer, err := target.do("PUT", filePath(path), body, size)
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

func (target *httpTarget) do(method, path string, body io.Reader, size int64) (io.ReadCloser, error) {
	request, err := http.NewRequest(method, target.base+path, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	request.Header.Set("Authorization", "Bearer "+target.token)
	if method == "POST" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Connect-Protocol-Version", "1")
	}
	response, err := target.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response.Body, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
	// The path is right, so nothing to be found means no such route.
	if response.StatusCode == http.StatusNotFound && bytes.Contains(text, []byte("no such procedure or path")) {
		return nil, errNotOffered
	}
	return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
}

func filePath(path string) string {
	return "/v1/files/" + (&url.URL{Path: path}).EscapedPath()
}

// discard has no ReadFrom, so that the copy uses the buffer that it is given.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// repeated yields `chunk` over and over, as large a piece at a time as the reader takes.
type repeated struct{ remaining int64 }

func (r *repeated) Read(p []byte) (int, error) {
	if r.remaining == 0 {
		return 0, io.EOF
	}
	n := copy(p, chunk[:min(int64(len(chunk)), r.remaining)])
	r.remaining -= int64(n)
	return n, nil
}
