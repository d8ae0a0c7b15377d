package main

import (
	"io"
	"os"
	"strings"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// The largest packets that OpenSSH's sftp-server takes; the default of 32 KiB costs it throughput.
const sftpPacketBytes = 255 * 1024

// sshTarget is one connection: a session channel for each command, one SFTP session for all files.
type sshTarget struct {
	connection *ssh.Client
	files      *sftp.Client
}

func connectSSH(address, keyFile string) (Target, error) {
	pem, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		return nil, err
	}
	connection, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
		User: "root",
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		// The benchmark started that daemon itself a moment ago.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return nil, err
	}
	files, err := sftp.NewClient(connection, sftp.MaxPacketUnchecked(sftpPacketBytes), sftp.UseConcurrentWrites(true))
	if err != nil {
		connection.Close()
		return nil, err
	}
	return &sshTarget{connection, files}, nil
}

func (target *sshTarget) Exec(argv []string) ([]byte, error) {
	session, err := target.connection.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Output(quote(argv))
}

func (target *sshTarget) Stream(argv []string, onOutput func([]byte)) error {
	session, err := target.connection.NewSession()
	if err != nil {
		return err
	}
	defer session.Close()
	session.Stdout = writerFunc(onOutput)
	return session.Run(quote(argv))
}

type writerFunc func([]byte)

func (write writerFunc) Write(p []byte) (int, error) {
	write(p)
	return len(p), nil
}

func (target *sshTarget) List(path string) (int, error) {
	entries, err := target.files.ReadDir(path)
	return len(entries), err
}

func (target *sshTarget) Stat(path string) error {
	_, err := target.files.Stat(path)
	return err
}

func (target *sshTarget) Download(path, sha256 string) (int64, error) {
	if sha256 != "" {
		return 0, errNotOffered
	}
	file, err := target.files.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return file.WriteTo(discard{})
}

func (target *sshTarget) Upload(path string, size int64, sha256 string) error {
	if sha256 != "" {
		return errNotOffered
	}
	file, err := target.files.Create(path)
	if err != nil {
		return err
	}
	if _, err := file.ReadFromWithConcurrency(&repeated{remaining: size}, 64); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func (target *sshTarget) ReadFile(path string) ([]byte, error) {
	file, err := target.files.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

func (target *sshTarget) WriteFile(path string, content []byte) error {
	file, err := target.files.Create(path)
	if err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func (target *sshTarget) Close() {
	target.files.Close()
	target.connection.Close()
}

// quote makes one line for the login shell, which is the only way into sshd.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
