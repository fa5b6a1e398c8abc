import { expect, test } from 'vitest'
import { charsetText, encodeCharset, findDecoder } from './charset.ts'

// Characters that a set encodes twice, only as four bytes, or in a form of its own.
test.each([
  ['gb18030', '€😀é中ㄅ', 'a2e39439fc36a8a6d6d0a8c5'],
  ['gb18030', 'ɐ￿', '8130ab378431a439'],
  ['gbk', '€', '80'],
  ['big5', '十¥', 'a45126233136353b'],
  ['shift_jis', 'ｱ¥纊−', 'b15cfa5c817c'],
  ['euc-jp', 'こ‾', 'a4b37e'],
  ['iso-2022-jp', 'a日本b', '611b2442467c4b5c1b284262'],
  ['iso-2022-jp', 'ｱ¥a~', '1b244225221b284a5c611b28427e'],
  ['iso-2022-jp', '日😀ﾞ', '1b2442467c1b284226233132383531323b1b2442212b1b2842'],
])('%s writes %s', (name, text, bytes) => {
  const decoder = findDecoder(name) as TextDecoder
  expect(encodeCharset(text, decoder).toString('hex')).toBe(bytes)
})

test.each([
  ['fffe6100', 'iso-8859-1', 'a'],
  ['feff0061', 'utf-8', 'a'],
  ['efbbbfc3a9', 'windows-1252', 'é'],
  ['ff61', 'iso-8859-1', 'ÿa'],
  ['1b2442467c1b284261', 'iso-2022-jp', '日a'],
  ['6162', 'iso-2022-kr', '\ufffd'],
  ['', 'hz-gb-2312', ''],
])('%s in %s is %s', (bytes, name, text) => {
  expect(charsetText(Buffer.from(bytes, 'hex'), name)).toBe(text)
})
