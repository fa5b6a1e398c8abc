import { expect, test } from 'vitest'
import { Networks } from './networks.ts'

const denied = new Networks(['169.254.0.0/16', '127.0.0.0/8', '100.100.100.200/32', '::1/128', 'fe80::/10', 'shop.svc'])

test.each([
  '169.254.169.254',
  '::1',
  'fe80::1%eth0',
  '::ffff:169.254.169.254',
  '::ffff:a9fe:a9fe',
  '::a9fe:a9fe',
  '::ffff:0:a9fe:a9fe',
  '64:ff9b::a9fe:a9fe',
  '64:ff9b::169.254.169.254',
  '64:ff9b:1::a9fe:a9fe',
  '64:ff9b:1:a9fe:a9:fe00::', // 48 bits before the address
  '64:ff9b:1:a9:fe:a9fe::', // 56 bits
  '64:ff9b:1:0:a9:fea9:fe00:0', // 64 bits
  '2002:a9fe:a9fe::1',
  '2001:0:a9fe:a9fe::1',
  '2001:0:1:2:3:4:5601:5601', // the client, inverted
  '2001:db8::5efe:a9fe:a9fe',
  '2001:db8::200:5efe:a9fe:a9fe',
  '64:ff9b::6464:64c8',
])('%s is in a denied network', (address) => {
  expect(denied.has(address)).toBe(true)
})

test.each([
  '8.8.8.8',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
  '2002:808:808::1',
  '2001:db8::a9fe:a9fe', // embeds no IPv4 address
  '2606:4700::1111',
  'shop.svc',
])('%s is not in a denied network', (address) => {
  expect(denied.has(address)).toBe(false)
})
