// Package internet has a small internet for tests: names, servers and addresses that exist only in
// a network namespace made for one command. No test needs, or reaches, the real one.
//
// A test binary calls [Inside] first in TestMain. [Command] then starts the same binary once more,
// in new namespaces, where it is all servers at once, and the parent of the command: a name server
// at each address, HTTP at port 80, TLS at 443 and 853, a proxy at 3128, echo, a banner as of SSH,
// a slow reader, and datagrams. What arrives is written to a log, one line each, so that a test can
// prove what did not:
//
//	dns NAME TYPE at ADDRESS      a question
//	raw PORT at ADDRESS BYTES     what came by TCP, quoted; the first bytes of each connection
//	tls NAME at ADDRESS           a ClientHello that could be read
//	http METHOD HOST PATH         a request
//	proxy METHOD TARGET AUTH      what the proxy was asked for
//	udp PORT at ADDRESS BYTES     a datagram to another port than 53
//	slow BYTES clean|reset        what the slow reader got, and how it ended
//
// It works as root and as an ordinary user who can have user namespaces.
package internet
