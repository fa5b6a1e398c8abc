import { expect, test } from 'vitest'
import { joinedKey, splitKey } from './joined-key.ts'

const texts = ['', '-', ':', '0:', '1:a', 'a', '12:', '\0', '\n', '\udffe', '\udfff', 'é😀', undefined]
const rows = texts.flatMap((first) => texts.flatMap((second) => [[first], [first, second], [first, second, first]]))

test('a key can be split into its texts, and different texts have different keys', () => {
  const keys = new Map<string, string>()
  for (const row of rows) {
    const key = joinedKey(row)
    expect(splitKey(key)).toEqual(row)
    const text = JSON.stringify(row, (_, value: unknown) => (value === undefined ? { absent: true } : value))
    expect(keys.get(key) ?? text).toBe(text)
    keys.set(key, text)
  }
})
