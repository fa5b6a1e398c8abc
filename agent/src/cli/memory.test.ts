import { expect, test } from 'vitest'
import { unchangedRanges } from './memory.ts'

const mapping = (line: string, anonymous: number) => `${line}
Size:               4280 kB
Rss:                4280 kB
Anonymous:      ${String(anonymous).padStart(8)} kB
AnonHugePages:         0 kB
VmFlags: rd mr mw me sd
`

test('only pages that can be read from the file again are unmapped', () => {
  const smaps = [
    mapping('00400000-0082e000 r--p 00000000 fe:00 10511526                           /usr/local/bin/node', 0),
    mapping('0082e000-03489000 r-xp 0042e000 fe:00 10511526                           /usr/local/bin/node', 0),
    mapping('072a7000-072dc000 r--p 06ea7000 fe:00 10511526                           /usr/local/bin/node', 24), // relocated
    mapping('072dc000-07308000 rw-p 06edc000 fe:00 10511526                           /usr/local/bin/node', 0), // writable
    mapping('07308000-07309000 r-xp 00000000 00:00 0 ', 0), // created at run time: no file
    mapping('7ff05871c000-7ff05871e000 r-xp 00000000 00:00 0                          [vdso]', 0),
    mapping('7ff05871f000-7ff058745000 r-xs 00001000 fe:00 325835                     /a/shared/file', 0),
    mapping('7ff058745000-7ff05874f000 r--p 00027000 fe:00 325835                     /lib/libm.so.6', 0),
  ].join('')
  expect(unchangedRanges(smaps)).toEqual([
    { start: 0x400000n, length: 0x42e000n },
    { start: 0x82e000n, length: 0x2c5b000n },
    { start: 0x7ff058745000n, length: 0xa000n },
  ])
})
