// Function `encrypt_ip`.

import { defineFunction } from '../function.ts'
import { ipCipher } from '../ip-cipher.ts'

export const encryptIp = defineFunction({
  ...ipCipher(true),
  name: 'encrypt_ip',
  summary: 'Maps an IP address to another one with a key; `decrypt_ip` maps it back.',
  description:
    'In mode `aes128` (16-byte key) any address may become any other. Mode `pfx` (32-byte key) keeps the address family, and addresses with a common prefix get a common prefix of the same length.',
  examples: [
    {
      source: 'encrypt_ip!("192.168.1.1", "k0k1k2k3k4k5k6k7", "aes128")',
      result: '"d29a:24ef:cff7:9897:7a86:725:4e83:4f6e"',
    },
    {
      source: 'encrypt_ip!("2001:db8::1", "p0p1p2p3p4p5p6p7q0q1q2q3q4q5q6q7", "pfx")',
      result: '"a00b:692b:af65:595e:9c02:3748:7a26:6f92"',
    },
    { source: 'encrypt_ip("10.0.0.1", "short", "aes128") ?? "no address"', result: '"no address"' },
  ],
})
