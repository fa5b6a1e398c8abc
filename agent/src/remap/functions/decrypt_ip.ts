// Function `decrypt_ip`.

import { defineFunction } from '../function.ts'
import { ipCipher } from '../ip-cipher.ts'

export const decryptIp = defineFunction({
  ...ipCipher(false),
  name: 'decrypt_ip',
  summary: 'Reverses the mapping of an IP address by `encrypt_ip`.',
  examples: [
    {
      source: 'decrypt_ip!("d29a:24ef:cff7:9897:7a86:725:4e83:4f6e", "k0k1k2k3k4k5k6k7", "aes128")',
      result: '"192.168.1.1"',
    },
    {
      source: 'decrypt_ip!("a00b:692b:af65:595e:9c02:3748:7a26:6f92", "p0p1p2p3p4p5p6p7q0q1q2q3q4q5q6q7", "pfx")',
      result: '"2001:db8::1"',
    },
    { source: 'decrypt_ip("10.0.0.1", "short", "aes128") ?? "no address"', result: '"no address"' },
  ],
})
